//! Bitsets and bitmasks of IDL 4. Their keywords are names in older texts, so the following tokens decide.

use super::{Parsed, Parser, Reported};
use crate::ast::{Bitfield, Bitmask, Bitset};
use crate::intern::Word;
use crate::lex::{Punct, Tok};

impl Parser<'_> {
    /// `bitset` or `bitmask` when a definition of one starts here, rather than a type of that name.
    pub(super) fn at_bits(&self) -> Option<Word> {
        let word = self.word_here()?;
        let named = matches!(self.tok_ahead(1), Tok::Ident(_) | Tok::Escaped(_) | Tok::Keyword(_));
        let opens = match self.tok_ahead(2) {
            Tok::Punct(Punct::OpenBrace) => matches!(word, Word::Bitset | Word::Bitmask),
            Tok::Punct(Punct::Colon) => word == Word::Bitset,
            _ => false,
        };
        (named && opens).then_some(word)
    }

    pub(super) fn bitset(&mut self) -> Parsed<Bitset> {
        self.bump();
        let name = self.ident("the name of the bitset")?;
        let base = if self.eat(Punct::Colon) { Some(self.scoped_name("the base")?) } else { None };
        let open = self.span();
        self.expect(Punct::OpenBrace, "to begin the bitset")?;
        let mut fields = Vec::new();
        self.nested(|parser| {
            while !matches!(parser.tok(), Tok::End | Tok::Punct(Punct::CloseBrace)) {
                if parser.eat(Punct::Semi) {
                    continue;
                }
                let start = parser.at;
                match parser.bitfield() {
                    Ok(field) => {
                        fields.push(field);
                        if parser.semicolon().is_err() {
                            parser.synchronise(start);
                        }
                    }
                    Err(Reported) => parser.synchronise(start),
                }
            }
            Ok(())
        })?;
        self.close_brace(open, "bitset")?;
        Ok(Bitset { name, base, fields })
    }

    /// `bitfield<width> name`, `bitfield<width, type> name`, or without a name.
    fn bitfield(&mut self) -> Parsed<Bitfield> {
        let mut lead = self.lead()?;
        if self.word_here() != Some(Word::Bitfield) {
            let (span, found) = (self.span(), self.found());
            self.diags.no_bitfield(span, &found);
            return Err(Reported);
        }
        self.bump();
        self.expect(Punct::Less, "and the number of bits")?;
        let bits = self.bound()?;
        let ty = if self.eat(Punct::Comma) { Some(self.type_spec()?) } else { None };
        self.close_angle("to end the number of bits")?;
        self.annotations(&mut lead.annotations)?;
        // The grammar puts several names side by side; many texts have commas.
        let mut names = Vec::new();
        while matches!(self.tok(), Tok::Ident(_) | Tok::Escaped(_) | Tok::Keyword(_)) {
            names.push(self.ident("the name of the field")?);
            if self.eat(Punct::Comma) && !matches!(self.tok(), Tok::Ident(_) | Tok::Escaped(_)) {
                return self.expected("the name of a field");
            }
        }
        Ok(Bitfield { lead, bits, ty, names })
    }

    pub(super) fn bitmask(&mut self) -> Parsed<Bitmask> {
        self.bump();
        let name = self.ident("the name of the bitmask")?;
        let open = self.span();
        self.expect(Punct::OpenBrace, "to begin the bitmask")?;
        let mut flags = Vec::new();
        while self.tok() != Tok::Punct(Punct::CloseBrace) {
            let lead = self.lead()?;
            flags.push((lead, self.ident("the name of a flag")?));
            if !self.eat(Punct::Comma) {
                break;
            }
        }
        self.close_brace(open, "bitmask")?;
        Ok(Bitmask { name, flags })
    }
}
