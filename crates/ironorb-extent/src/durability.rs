//! What an element in a file survives.

/// What the elements of a file survive. Each kind writes more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// An orderly end of the process. After any other end elements may be torn, and the file is opened only where that is
    /// accepted.
    #[default]
    None,
    /// The end of the process at any instruction. An update costs two more copies of the state, and no system call.
    Process,
    /// The end of the machine. An update returns once it is on the disk. Updates of several threads share one write.
    Power,
}

impl Durability {
    pub(crate) fn number(self) -> u32 {
        match self {
            Durability::None => 0,
            Durability::Process => 1,
            Durability::Power => 2,
        }
    }

    pub(crate) fn of_number(number: u32) -> Option<Durability> {
        [Durability::None, Durability::Process, Durability::Power]
            .into_iter()
            .find(|it| it.number() == number)
    }
}
