//! The words of GML.

use super::super::{ImportError, ProblemPlace, line_breaks};

/// A word, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) place: ProblemPlace,
    pub(super) kind: Kind<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Open,
    Close,
    /// A key, or a number.
    Word(&'a str),
    /// What stood between quotes.
    Text(&'a str),
}

/// Reads words one by one; after an error there are no more.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Tokens<'a> {
    pub(super) const fn of(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// Passes over blanks, and over comments: lines that begin with `#`.
    fn skip_blanks(&mut self) {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.take(blanks);
            if !self.rest.starts_with('#') {
                return;
            }
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += line_breaks(taken.as_bytes());
        self.rest = rest;
        taken
    }

    /// After the opening quote.
    fn quoted(&mut self, place: ProblemPlace) -> Result<Kind<'a>, ImportError> {
        self.take(1);
        let Some(end) = self.rest.find('"') else {
            self.rest = "";
            return Err(ImportError::syntax(place, "a string without closing quote; add one"));
        };
        let text = self.take(end);
        self.take(1);
        Ok(Kind::Text(text))
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Result<Token<'a>, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        let place = ProblemPlace::Line(self.line);
        let kind = match self.rest.chars().next()? {
            '[' => {
                self.take(1);
                Kind::Open
            }
            ']' => {
                self.take(1);
                Kind::Close
            }
            '"' => match self.quoted(place) {
                Ok(kind) => kind,
                Err(error) => return Some(Err(error)),
            },
            _ => {
                let ends = |letter: char| letter.is_whitespace() || "[]\"".contains(letter);
                let end = self.rest.find(ends).unwrap_or(self.rest.len());
                Kind::Word(self.take(end))
            }
        };
        Some(Ok(Token { place, kind }))
    }
}
