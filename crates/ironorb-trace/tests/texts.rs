//! Bytes and texts that are anything.

use ironorb_trace::{TraceContext, TraceState};
use proptest::prelude::*;

fn any_context() -> impl Strategy<Value = TraceContext> {
    let state = prop::collection::btree_map("[a-z0-9][a-z0-9_*/@-]{0,20}", "[!-+./0-9A-~-]{1,40}", 0..8);
    let parts = (any::<[u8; 16]>(), any::<[u8; 8]>(), any::<u8>(), state);
    parts.prop_filter_map("ids are not zero", |(trace_id, parent_id, flags, members)| {
        let members: Vec<_> = members.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let state: TraceState = members.join(",").parse().expect("it keeps to the grammar");
        Some(TraceContext::new(trace_id, parent_id, flags).ok()?.with_state(state))
    })
}

proptest! {
    #[test]
    fn contexts_come_back_from_bytes_and_texts(context in any_context()) {
        prop_assert_eq!(TraceContext::from_bytes(&context.to_bytes()), Ok(context.clone()));
        let text = context.to_string();
        prop_assert_eq!(text.len(), 55);
        prop_assert_eq!(text.parse::<TraceContext>().map(|it| it.with_state(context.state().clone())), Ok(context));
    }

    #[test]
    fn any_bytes_are_a_context_or_an_error(data in prop::collection::vec(any::<u8>(), 0..700)) {
        if let Ok(context) = TraceContext::from_bytes(&data) {
            let bytes = context.to_bytes();
            prop_assert!(bytes.len() <= data.len());
            prop_assert_eq!(TraceContext::from_bytes(&bytes), Ok(context));
        }
    }

    #[test]
    fn a_context_with_a_wrong_octet_is_one_or_an_error(
        context in any_context(), at in any::<prop::sample::Index>(), octet in any::<u8>(),
    ) {
        let mut data = context.to_bytes();
        *at.get_mut(&mut data) = octet;
        if let Ok(context) = TraceContext::from_bytes(&data) {
            prop_assert!(context.to_bytes().len() <= data.len());
        }
    }

    #[test]
    fn any_text_is_a_state_or_an_error(text in "[a-c=, \t\u{e4}]{0,700}") {
        if let Ok(state) = text.parse::<TraceState>() {
            prop_assert!(state.as_str().len() <= TraceState::LENGTH_MAX.min(text.len()));
            prop_assert_eq!(state.as_str().parse::<TraceState>(), Ok(state.clone()));
        }
    }

    #[test]
    fn any_text_is_a_traceparent_or_an_error(text in "[0-9a-f-]{50,60}|\\PC{0,60}") {
        if let Ok(context) = text.parse::<TraceContext>() {
            prop_assert_eq!(&context.to_string()[3..52], &text[3..52]);
        }
    }
}
