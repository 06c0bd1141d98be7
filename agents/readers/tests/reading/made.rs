//! Files that are made for a test.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

pub(crate) fn zip<T: AsRef<[u8]>>(files: &[(&str, T)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, content) in files {
        zip.start_file(*name, options).unwrap();
        zip.write_all(content.as_ref()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A zip file of which the only entry says that it is encrypted.
pub(crate) fn encrypted_zip() -> Vec<u8> {
    let mut bytes = zip(&[("secret.txt", "nobody reads this")]);
    let central = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    bytes[6] |= 1;
    bytes[central + 8] |= 1;
    bytes
}

/// A PDF of these objects, the first of which is its catalog.
pub(crate) fn pdf(objects: &[String]) -> Vec<u8> {
    let mut out = b"%PDF-1.4\n".to_vec();
    let mut starts = Vec::new();
    for (number, object) in (1..).zip(objects) {
        starts.push(out.len());
        write!(out, "{number} 0 obj\n{object}\nendobj\n").unwrap();
    }
    let xref = out.len();
    write!(out, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for start in starts {
        writeln!(out, "{start:010} 00000 n ").unwrap();
    }
    let size = objects.len() + 1;
    write!(out, "trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n").unwrap();
    out
}

/// A PDF of pages with one line each.
pub(crate) fn pages(number: usize, line: impl Fn(usize) -> String) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut kids = String::new();
    for page in 1..=number {
        let text = format!("BT /F1 12 Tf 72 700 Td ({}) Tj ET", line(page));
        objects.push(format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()));
        let content = objects.len();
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {content} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>"
        ));
        kids.push_str(&format!("{} 0 R ", objects.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {number} >>");
    pdf(&objects)
}

/// A DOCX with this body.
pub(crate) fn docx(body: &str) -> Vec<u8> {
    zip(&[("word/document.xml", format!("<w:document><w:body>{body}</w:body></w:document>"))])
}

/// A workbook with one sheet of these rows.
pub(crate) fn xlsx(rows: &str) -> Vec<u8> {
    let namespaces = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" \
                      xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\"";
    let link = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet";
    zip(&[
        ("[Content_Types].xml", "<Types/>".to_owned()),
        (
            "_rels/.rels",
            "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"r1\" \
             Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" \
             Target=\"xl/workbook.xml\"/></Relationships>"
                .to_owned(),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook {namespaces}><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
                 <Relationship Id=\"r1\" Type=\"{link}\" Target=\"worksheets/sheet1.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            format!("<worksheet {namespaces}><sheetData>{rows}</sheetData></worksheet>"),
        ),
    ])
}

/// A picture of this size, of which nothing but the header is there, and what tells it from others.
pub(crate) fn png(width: u32, height: u32, told_by: &[u8]) -> Vec<u8> {
    let header = [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], &width.to_be_bytes(), &height.to_be_bytes()];
    [&header.concat()[..], b"\x08\x02\0\0\0", told_by].concat()
}
