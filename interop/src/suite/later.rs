//! Deferred replies, and the characters of strings.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ironorb::{Reply, SystemException, WString, nil_reference};

use crate::interop::{self, *};

/// Keeps replies. No thread waits for them.
#[derive(Debug, Default)]
pub(super) struct LaterServant {
    held: Mutex<Vec<Held>>,
}

#[derive(Debug)]
struct Held {
    x: i32,
    y: String,
    reply: Reply<(i32, String), later::HoldError>,
}

impl Held {
    fn answer(self) {
        self.reply.send(if self.x < 0 {
            Err(Refused { why: "late".to_owned(), code: self.x }.into())
        } else {
            Ok((self.x, self.y))
        });
    }
}

impl LaterServant {
    fn all(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl interop::DeferredLater for LaterServant {
    fn hold(&self, x: i32, y: &str, reply: Reply<(i32, String), later::HoldError>) {
        self.all().push(Held { x, y: y.to_owned(), reply });
    }

    fn held(&self, reply: Reply<u32, SystemException>) {
        reply.send(Ok(self.all().len() as u32));
    }

    fn answer_all(&self, reply: Reply<u32, SystemException>) {
        let held = std::mem::take(&mut *self.all());
        reply.send(Ok(held.len() as u32));
        // Answers from another thread, in another order.
        std::thread::spawn(move || held.into_iter().rev().for_each(Held::answer));
    }

    fn remind(&self, to: Option<&ListenerRef>, question: i32, reply: Reply<(), SystemException>) {
        let Some(to) = to.cloned() else { return reply.send(Err(nil_reference())) };
        reply.send(Ok(()));
        std::thread::spawn(move || {
            // A client that waits for the hint notices when it does not come.
            if let Ok(answer) = to.ask(question) {
                let _ = to.hint(answer);
            }
        });
    }
}

#[derive(Debug)]
pub(super) struct TextsServant;

fn scalars(text: &str) -> Result<ULongSeq, SystemException> {
    Ok(text.chars().map(u32::from).collect())
}

fn text(characters: &[u32]) -> Result<String, SystemException> {
    let text: Option<String> = characters.iter().copied().map(char::from_u32).collect();
    text.ok_or_else(|| super::internal("a number is no character"))
}

impl interop::Texts for TextsServant {
    fn characters_of(&self, text: &str) -> Result<ULongSeq, SystemException> {
        scalars(text)
    }

    fn text_of(&self, characters: &[u32]) -> Result<String, SystemException> {
        text(characters)
    }

    fn wide_characters_of(&self, text: &str) -> Result<ULongSeq, SystemException> {
        scalars(text)
    }

    fn wide_text_of(&self, characters: &[u32]) -> Result<WString, SystemException> {
        text(characters).map(WString::from)
    }
}
