//! TypeCodes and operations made from IDL at run time equal those of generated code.

pub(crate) mod generated {
    // Not what is in it is tested here, but what it is described as.
    #![allow(dead_code)]

    macro_rules! cases {
        ($($case:ident)*) => {$(
            pub(crate) mod $case {
                include!(concat!(
                    env!("CARGO_MANIFEST_DIR"), "/../ironorb-build/testdata/emit/", stringify!($case), "/out.rs"
                ));
            }
        )*};
    }

    cases! {
        abstract_interfaces any bounds boxes building_blocks custom_values docs enums_constants external external_base file_scope fixed inheritance letters local_native many_results names operations recursion structs unions value_operations values
    }
}

use std::path::Path;

use generated::*;
use ironorb::{Any, TypeCode, TypeDef};
use ironorb_dynamic::Interfaces;
use ironorb_dynamic::json::{from_json, to_json};
use ironorb_idl::Options;

macro_rules! statics {
    ($($($module:ident)::+ [$($type_code:ident)*])*) => {
        &[$({
            use $($module)::+::*;
            (stringify!($($module)::+), &[$(&$type_code),*])
        }),*]
    };
}

/// The statics of the generator's own tests, by module; the first name is that of the test case.
const STATICS: &[(&str, &[&TypeDef])] = statics! {
    abstract_interfaces::catalogue [TC_UNKNOWN TC_DESCRIBABLE TC_PRICED TC_THINGS TC_LEAFLET TC_TICKET TC_SHELF TC_BID TC_EITHER TC_SHOP]
    any::dynamic [TC_VALUES TC_PROPERTY TC_PROPERTIES TC_EITHER TC_UNFIT TC_LETTER TC_WORD TC_STORE]
    bounds::bounds [TC_CODE TC_CODES TC_PAGES TC_TABLE TC_SHORT_WIDE TC_HOLDER TC_CHOICE TC_FLAGS TC_CHECKER]
    boxes::corba [TC_STRING_VALUE TC_W_STRING_VALUE]
    boxes::boxes [TC_POINT TC_WORDS TC_CODE TC_TEXT TC_LETTERS TC_NAMES TC_BRIEF TC_PLACE TC_TABLE TC_LABELS TC_KEEPER]
    building_blocks::blocks [TC_COLOR TC_POINT TC_RIGHTS TC_MARKS TC_HEADER TC_WIDE TC_AGES TC_FEW TC_NESTED TC_LETTERS TC_LABELS TC_BASE TC_DERIVED TC_SETTINGS TC_MEASURED TC_WEIGHED TC_LATE TC_ONE TC_BY_BYTE TC_BY_SMALL TC_BY_WIDE TC_BY_UINT8 TC_STORE]
    custom_values::packing [TC_PACKED TC_NEVER TC_HOLDER TC_CARRIER]
    docs::docs [TC_NOTED TC_SERVICE TC_CHOSEN]
    enums_constants::constants [TC_LEVEL TC_HEIGHT TC_LIMITS]
    external::app [TC_LINE TC_CIRCLE]
    external_base::base [TC_POINT TC_POINTS TC_SHAPE]
    external_base::base::shape [TC_GONE]
    file_scope [TC_MESSAGE TC_MOOD TC_REPLY TC_SILENT TC_MESSAGES TC_PARROT]
    file_scope::parrot [TC_PAIR]
    fixed::money [TC_AMOUNT TC_TIP TC_AMOUNTS TC_LINE TC_COST TC_SHOP]
    inheritance::base [TC_SHAPE]
    inheritance::base::shape [TC_FLAT TC_SIDE]
    inheritance::shapes [TC_MOVABLE TC_SCALABLE]
    inheritance::shapes::deep [TC_SPRITE TC_TAG]
    inheritance::width [TC_AN_INTERFACE_WITH_A_NAME TC_ANOTHER_ONE_THAT_HAS_ONE TC_JOINED_IN_ALL_OF_THE_LINE TC_JOINED_IN_ALL_OF_THE_LINE_ TC_JOINED]
    letters::letters::structs [TC_R TC_S TC_T TC_W TC_H TC_USE TC_TOLD TC_V]
    letters::letters::interfaces [TC_R TC_S TC_T TC_W TC_H]
    letters::letters::values [TC_T TC_W TC_R TC_S TC_SEEN TC_UNSEEN TC_WAY]
    local_native::nearby [TC_COOKIE TC_STOP TC_VISITOR TC_DEEP TC_FORWARD TC_HOLDER TC_BAG TC_GUEST TC_LOST TC_POST TC_DEPOT]
    many_results [TC_MANY]
    names::type_ [TC_STRING TC_FOO_BAR TC_FOO_BAR_ TC_RESULT TC_VEC TC_THING_ TC_THING_REF TC_THING_SKELETON TC_CLASH TC_DERIVED TC_THING_ASYNC TC_DEFERRED_THING TC_POINT_ TC_TWICE TC_NODE_OPERATIONS TC_NODE_FACTORY TC_NODE TC_LEAF TC_TOLD TC_BITS TC_PARTS TC_TAGGED]
    names::type_::clash [TC_SYSTEM TC_FETCH_ERROR TC_G]
    names::type_::str_ [TC_SELF]
    names::type_::v1_0 [TC_NV_LIST]
    names::type_::v10 [TC_ORB]
    operations::bank [TC_INSUFFICIENT TC_FROZEN TC_NUMBERS TC_WORDS TC_KIND TC_ENTRY TC_RATES TC_CENTS TC_RAW TC_ACCOUNT TC_ACCOUNTS TC_OFFICE]
    recursion::recursion [TC_TREE TC_FOREST TC_CHAIN TC_EXPR TC_EXPRS TC_WALKER TC_LINK]
    structs::shapes [TC_METRES TC_MATRIX TC_WORDS TC_POINT TC_EVERYTHING TC_OUTER TC_NOTHING TC_SPARSE TC_SINK TC_REFUSED TC_EMPTY]
    structs::shapes::outer [TC_INNER TC_SIDE]
    unions::unions [TC_COLOR TC_PAINT TC_BY_BOOLEAN TC_BY_COLOR TC_BY_LONG TC_BY_CHAR TC_ONLY_DEFAULT]
    unions::unions::by_long [TC_PAIR]
    value_operations::drawing [TC_PRINTABLE TC_UNFIT TC_MARKED TC_DRAWABLE TC_SHAPE TC_CIRCLE TC_DOT TC_TITLED TC_GAUGE TC_SCALE TC_BOARD]
    value_operations::drawing::shape [TC_SHAPES]
    values::graphs [TC_NODE TC_NODES TC_START TC_EDGE TC_NAMED TC_DEEP TC_APART TC_EMPTY TC_MAYBE TC_CYCLE TC_WALKER]
    values [TC_ROOT]
};

fn known_of(case: &str) -> Interfaces {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../ironorb-build/testdata/emit")
        .join(case)
        .join("in.idl");
    let mut known = Interfaces::new();
    let warnings = known.add_idl([&path], &Options::new());
    warnings.unwrap_or_else(|error| panic!("{case}: {error}"));
    known
}

#[test]
fn type_codes_are_those_of_generated_code() {
    let mut compared = 0;
    for (module, definitions) in STATICS {
        let case = module.split(':').next().unwrap().trim();
        let known = known_of(case);
        for definition in *definitions {
            let generated = TypeCode::from(*definition);
            let id = generated.id().unwrap();
            let made = known.type_code(id).unwrap_or_else(|| panic!("{case} knows no {id}"));
            assert_eq!(made, generated, "{id} of {case}");
            assert_eq!(generated, made, "{id} of {case}");
            compared += 1;
        }
    }
    assert!(compared >= 150, "only {compared} were compared");
}

/// TypeCodes represent `int8` by `octet`, so the label -1 must be 255: the interpreter reads one as the
/// other.
#[test]
fn a_union_of_int8_is_read_by_its_type_code() {
    use generated::building_blocks::blocks::BySmall;
    for (value, json) in [
        (BySmall::Minus(7), serde_json::json!({ "discriminator": 255, "minus": 7 })),
        (BySmall::Five("v".to_owned()), serde_json::json!({ "discriminator": 5, "five": "v" })),
    ] {
        let type_code = TypeCode::for_type::<BySmall>();
        let any = Any::with_type(type_code.clone(), &value).expect("a value of its type");
        assert_eq!(any.extract::<BySmall>(), Ok(value));
        assert_eq!(to_json(&any), Ok(json.clone()));
        assert_eq!(from_json(&type_code, &json, &Interfaces::new(), None), Ok(any));
    }
}
