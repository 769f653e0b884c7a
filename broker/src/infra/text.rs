//! Text from outside, made fit to store and show. `document` does it for JSON; no other place does.

/// The replacement for a dropped character.
pub(crate) const NOT_KEPT: char = '\u{FFFD}';

/// Whether a character is kept. Postgres cannot store the zero character; other control characters act on
/// terminals and logs, and direction marks change how a page reads.
fn is_kept(of: char) -> bool {
    let of_direction = matches!(of, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    matches!(of, '\n' | '\t') || !(of.is_control() || of_direction)
}

/// Makes a text fit to store and show, at most `chars` characters long.
pub fn storable(text: &str, chars: usize) -> String {
    let kept = text.trim().chars().take(chars);
    kept.map(|of| if is_kept(of) { of } else { NOT_KEPT }).collect()
}

#[cfg(test)]
mod tests {
    use super::storable;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_can_be_stored(text in any::<String>(), chars in 0_usize..50) {
            let kept = storable(&text, chars);
            prop_assert!(kept.chars().count() <= chars);
            prop_assert!(kept.chars().all(|of| !of.is_control() || of == '\n' || of == '\t'));
        }
    }

    #[test]
    fn legible_text_is_kept() {
        assert_eq!(storable(" no power\n", 100), "no power");
        assert_eq!(storable("kein Strom: \u{26A1} \u{5168}", 100), "kein Strom: \u{26A1} \u{5168}");
        assert_eq!(storable("a\0b\u{1b}[2Jc\u{202E}d", 100), "a\u{FFFD}b\u{FFFD}[2Jc\u{FFFD}d");
    }
}
