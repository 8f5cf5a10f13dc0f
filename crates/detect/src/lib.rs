//! Words, language, URL parts: what duplicate and plagiarism detection stand on.
