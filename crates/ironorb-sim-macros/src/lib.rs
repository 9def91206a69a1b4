//! The attribute of `ironorb-sim`. Programs name it as `#[ironorb_sim::test]`.

use proc_macro::TokenStream;
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Error, ItemFn, LitInt, parse_macro_input};

/// Makes a function with one argument, `&mut Sim`, a test that runs in virtual time, once for each of its seeds.
///
/// `#[ironorb_sim::test(seeds = 200)]` runs it with the seeds 0 to 199; without a number there are 20.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut seeds = quote!(::ironorb_sim::SEEDS);
    let parser = syn::meta::parser(|meta| {
        if !meta.path.is_ident("seeds") {
            return Err(meta.error("the attribute has one setting: `seeds = 20`"));
        }
        let number: LitInt = meta.value()?.parse()?;
        if number.base10_parse::<u64>()? == 0 {
            return Err(Error::new(number.span(), "a test runs with one seed at least"));
        }
        seeds = quote!(#number);
        Ok(())
    });
    parse_macro_input!(arguments with parser);
    let mut function = parse_macro_input!(item as ItemFn);
    if function.sig.inputs.len() != 1 {
        let place = function.sig.inputs.span();
        return Error::new(place, "a simulated test has one argument: `sim: &mut ironorb_sim::Sim`")
            .into_compile_error()
            .into();
    }
    let name = function.sig.ident.clone();
    let attributes = std::mem::take(&mut function.attrs);
    quote! {
        #[::core::prelude::v1::test]
        #(#attributes)*
        fn #name() {
            #function
            ::ironorb_sim::run(::core::concat!(::core::module_path!(), "::", ::core::stringify!(#name)), #seeds, #name);
        }
    }
    .into()
}
