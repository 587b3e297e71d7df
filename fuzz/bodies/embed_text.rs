//! Any text has a vector of unit length or none, the same every time; any bytes are a model or none.

use loomdb::Embedder;
use loomdb::internals::encode::{StaticModel, builtin, episode_text};

/// First byte even: the rest is text. Odd: the rest is a model file.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    if kind % 2 == 1 {
        if let Ok(model) = StaticModel::from_bytes(rest) {
            let _ = model.embed_one("The quick brown fox, 42!");
        }
        return;
    }
    let text = String::from_utf8_lossy(rest);
    let model = builtin();
    let first = model.embed_one(&text).expect("the built-in model never fails");
    assert!(first == model.embed_one(&text).expect("as above"), "equal text, equal vector");
    if let Some(vector) = first {
        assert_eq!(vector.len(), model.dimension());
        let square: f64 = vector.iter().map(|value| f64::from(*value).powi(2)).sum();
        assert!((square - 1.0).abs() < 1e-4, "length {square}");
    }
    // In a batch a text has the vector that it has alone, whatever stands beside it.
    let with_speaker = episode_text(Some("Ada"), &text);
    let mut out = Vec::new();
    let known = model.embed(&[&with_speaker, &text], &mut out).expect("as above");
    assert_eq!((known.len(), out.len()), (2, 2 * model.dimension()));
    assert!(out.iter().all(|value| value.is_finite()));
    let alone = model.embed_one(&text).expect("as above");
    assert_eq!(known[1], alone.is_some());
    if let Some(alone) = alone {
        assert!(out[model.dimension()..] == alone[..], "a batch changes nothing");
    }
}
