package peer;

import interop.TextsOperations;

/** The part "texts". */
final class TextsServant implements TextsOperations {
    public int[] characters_of(String text) { return text.codePoints().toArray(); }
    public String text_of(int[] characters) { return new String(characters, 0, characters.length); }
    public int[] wide_characters_of(String text) { return characters_of(text); }
    public String wide_text_of(int[] characters) { return text_of(characters); }
}
