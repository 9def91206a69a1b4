//! GIOP messages in the streams: how many there are. Other protocols' octets are not counted as such.

/// How far a stream has come within its current message.
#[derive(Debug, Default)]
pub(super) struct Messages {
    header: Vec<u8>,
    /// Octets of the current message's body that are still to come.
    left: usize,
    /// The stream carries something else.
    is_foreign: bool,
}

const HEADER: usize = 12;

impl Messages {
    /// Takes what is sent next. Returns how many messages begin in it.
    pub(super) fn take(&mut self, mut octets: &[u8]) -> u64 {
        let mut begun = 0;
        while !octets.is_empty() && !self.is_foreign {
            let of_body = self.left.min(octets.len());
            self.left -= of_body;
            octets = &octets[of_body..];
            let of_header = (HEADER - self.header.len()).min(octets.len());
            self.header.extend_from_slice(&octets[..of_header]);
            octets = &octets[of_header..];
            let Some(header) = self.header.first_chunk::<HEADER>() else { break };
            if &header[..4] != b"GIOP" {
                self.is_foreign = true;
                break;
            }
            let size = [header[8], header[9], header[10], header[11]];
            let is_little_endian = header[6] & 1 != 0;
            self.left =
                if is_little_endian { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) } as usize;
            self.header.clear();
            begun += 1;
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use super::Messages;

    fn message(body: usize) -> Vec<u8> {
        let mut message = b"GIOP\x01\x02\x01\x00".to_vec();
        message.extend_from_slice(&(body as u32).to_le_bytes());
        message.resize(12 + body, 7);
        message
    }

    #[test]
    fn messages_are_counted_however_they_are_cut() {
        let stream: Vec<u8> = [message(0), message(5), message(100)].concat();
        for width in 1..=stream.len() {
            let mut messages = Messages::default();
            let begun: u64 = stream.chunks(width).map(|piece| messages.take(piece)).sum();
            assert_eq!(begun, 3, "pieces of {width} octets");
        }
    }

    #[test]
    fn other_protocols_have_no_messages() {
        let mut messages = Messages::default();
        assert_eq!(messages.take(b"GET / HTTP/1.1\r\nHost: GIOP\r\n\r\n"), 0);
        assert_eq!(messages.take(&message(3)), 0);
    }
}
