//! Which models see pictures, by the beginning of their names.

use super::named::longest;

/// What is published of families of models; the longest beginning counts. Those that are not here see nothing.
const FAMILIES: [(&str, bool); 42] = [
    ("gpt-4o", true),
    ("gpt-4o-audio", false),
    ("gpt-4-turbo", true),
    ("gpt-4.1", true),
    ("gpt-4.5", true),
    ("gpt-5", true),
    ("gpt-6", true),
    ("chatgpt-4o", true),
    ("o1", true),
    ("o1-mini", false),
    ("o1-preview", false),
    ("o3", true),
    ("o3-mini", false),
    ("o4", true),
    ("claude-3", true),
    ("claude-opus", true),
    ("claude-sonnet", true),
    ("claude-haiku", true),
    ("gemini-1.5", true),
    ("gemini-2", true),
    ("gemini-3", true),
    ("gemma3", true),
    ("gemma3:1b", false),
    ("gemma3:270m", false),
    ("gemma-3", true),
    ("gemma-3-1b", false),
    ("pixtral", true),
    ("mistral-medium", true),
    ("mistral-small", true),
    ("qwen-vl", true),
    ("qwen2-vl", true),
    ("qwen2.5-vl", true),
    ("qwen2.5vl", true),
    ("qwen3-vl", true),
    ("llama3.2-vision", true),
    ("llama-3.2-11b-vision", true),
    ("llama-3.2-90b-vision", true),
    ("llama4", true),
    ("llama-4", true),
    ("llava", true),
    ("minicpm-v", true),
    ("moondream", true),
];

/// Whether a model of this name, in lower case, sees pictures.
pub(super) fn sees(name: &str) -> bool {
    longest(FAMILIES.iter().copied(), name).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_see_are_known_by_their_names() {
        for (model, wanted) in [
            ("gpt-4o-mini", true),
            ("gpt-4o-audio-preview", false),
            ("gpt-5-nano", true),
            ("gpt-oss-120b", false),
            ("o3", true),
            ("o3-mini", false),
            ("claude-sonnet-4-5", true),
            ("claude-3-7-sonnet", true),
            ("gemini-2.5-flash", true),
            ("gemma3:1b", false),
            ("gemma3:12b", true),
            ("qwen2.5vl:7b", true),
            ("qwen2.5:7b", false),
            ("llama3.2", false),
            ("llama3.2-vision:11b", true),
            ("deepseek-chat", false),
            ("house-model", false),
        ] {
            assert_eq!(sees(model), wanted, "{model}");
        }
    }
}
