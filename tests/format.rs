//! The specification and the code agree: the worked example of format-spec.md is what the code writes.

use std::path::Path;
use std::sync::Arc;

use loomdb::internals::storage::segment::example;
use loomdb::internals::storage::vfs::{MemoryVfs, OpenMode, Vfs};

const BEGIN: &str = "<!-- example: begin -->\n";
const END: &str = "<!-- example: end -->";

fn written() -> String {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    let file = vfs.open(Path::new("/example.seg"), OpenMode::CreateNew).unwrap();
    example::write_example(&*file).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    format!("```\n{}\n```\n", example::hex_dump(&bytes).trim_end())
}

#[test]
fn the_worked_example_is_what_the_code_writes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec.md");
    let spec = std::fs::read_to_string(&path).unwrap();
    let start = spec.find(BEGIN).expect("the example's first marker") + BEGIN.len();
    let end = spec.find(END).expect("the example's last marker");
    let written = written();
    if std::env::var_os("LOOMDB_BLESS").is_some() {
        std::fs::write(&path, format!("{}{written}{}", &spec[..start], &spec[end..])).unwrap();
        return;
    }
    assert!(spec[start..end] == written, "format-spec.md section 11 and the code differ");
}
