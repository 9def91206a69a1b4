//! How an argument travels, by the word that stands behind its type in generated code: how it is written, what holds it
//! during an upcall, and how it is lent to the servant; and what goes beside the arguments.
//!
//! Not for use by hand, as the macros beside them.

/// Writes an argument.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_put {
    (value, $w:ident, $x:ident) => {
        $w.put(&$x)
    };
    (borrowed, $w:ident, $x:ident) => {
        $w.put($x)
    };
    (string, $w:ident, $x:ident) => {
        $w.write_str($x)
    };
    (wide, $w:ident, $x:ident) => {
        $w.write_wstr($x)
    };
    (octets, $w:ident, $x:ident) => {
        $w.write_octets($x)
    };
    (numbers($number:ty), $w:ident, $x:ident) => {
        $w.put($x)
    };
    (sequence, $w:ident, $x:ident) => {
        $w.put($x)
    };
    (reference, $w:ident, $x:ident) => {
        $w.put(&$x)
    };
    (checked($codec:ty), $w:ident, $x:ident) => {
        <$codec as $crate::generated::Lend>::put_lent($x, $w)
    };
}

/// Reads an argument into what holds it during the call: borrowed from the message where that can be.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_hold {
    (value, $r:ident) => {
        $r.get()?
    };
    (borrowed, $r:ident) => {
        $r.get()?
    };
    (string, $r:ident) => {
        $r.read_str()?
    };
    (wide, $r:ident) => {
        $r.read_wstr()?
    };
    (octets, $r:ident) => {
        $r.read_octets()?
    };
    (numbers($number:ty), $r:ident) => {
        $r.read_numbers::<$number>()?
    };
    (sequence, $r:ident) => {
        $r.read_elements()?
    };
    (reference, $r:ident) => {
        $r.get::<::std::option::Option<_>>()?
    };
    (checked($codec:ty), $r:ident) => {
        <$codec as $crate::generated::Codec>::get($r)?
    };
}

/// What follows the arguments: the context, if the operation has one.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_put_clause {
    (bounds [] $w:ident) => {};
    (context [$($pattern:literal),*] $w:ident) => {
        $crate::generated::put_context(&[$($pattern),*], $w)?;
    };
}

/// Reads the context, if the operation has one, for the time of the upcall.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_received {
    (bounds $r:ident) => {
        ()
    };
    (context $r:ident) => {
        $crate::generated::get_context($r)?
    };
}

/// The same for an upcall in this process.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_passed {
    (bounds []) => {
        ()
    };
    (context [$($pattern:literal),*]) => {
        $crate::generated::pass_context(&[$($pattern),*])
    };
}

/// An upcall in this process: as it is, or, where bounds are to be checked, between two looks at what is passed.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_local_call {
    (
        [bounds $($rest:ident)*] $call:expr;
        $result:ty; [$($mode:ident $(($codec:ty))? $parameter:ident),*]
    ) => {{
        $crate::generated::check_arguments(|_w| {
            $($crate::__ironorb_put!($mode $(($codec))?, _w, $parameter)?;)*
            ::std::result::Result::Ok(())
        })?;
        let results = $call?;
        $crate::generated::check_results(|w| <$result as $crate::generated::Codec>::put(&results, w))?;
        ::std::result::Result::Ok(results)
    }};
    ([$($rest:ident)*] $call:expr; $result:ty; $parameters:tt) => {
        $call
    };
}

/// Hands an argument to the servant.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_lend {
    (value, $x:ident) => {
        $x
    };
    (borrowed, $x:ident) => {
        &$x
    };
    (string, $x:ident) => {
        &$x
    };
    (wide, $x:ident) => {
        &$x
    };
    (octets, $x:ident) => {
        $x
    };
    (numbers($number:ty), $x:ident) => {
        &$x
    };
    (sequence, $x:ident) => {
        &$x
    };
    (reference, $x:ident) => {
        $x.as_ref()
    };
    (checked($codec:ty), $x:ident) => {
        <$codec as $crate::generated::Lend>::lend(&$x)
    };
}
