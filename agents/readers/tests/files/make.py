"""Makes the documents that the tests read, with nothing but the standard library. The results are checked in.

`old.xls`, `locked.pdf` and `owned.pdf` are made by xlwt and fpdf2: one sheet, and one page with a password."""

import io
import json
import tarfile
import zipfile
import zlib
from email.message import EmailMessage

DAY = (2026, 1, 2, 3, 4, 6)


def package(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            out.writestr(zipfile.ZipInfo(name, DAY), content, zipfile.ZIP_DEFLATED)


def pdf(pages, title):
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", None, b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"]
    kids = []
    for lines in pages:
        text = b"BT /F1 12 Tf 72 760 Td 16 TL\n"
        for line in lines:
            said = line.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
            text += b"(" + said + b") Tj T*\n"
        text = zlib.compress(text + b"ET")
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(text) + text + b"\nendstream")
        content = len(objects)
        objects.append(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>" % content)
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [" + b" ".join(kids) + b"] /Count %d >>" % len(kids)
    objects.append(b"<< /Title (%s) >>" % title.encode())
    out, starts = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        starts.append(len(out))
        out += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    xref = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % start for start in starts)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(objects), xref)
    return out


REPORT = pdf(
    [
        ["Yearly report", "", "The committee met four times."],
        ["Results", "", "Revenue grew by 12 percent to 4.8 million.", "Costs (rent and wages) fell to 3.1 million."],
        ["Outlook", "", "The plant in Köln opens in May."],
    ],
    "Yearly report",
)
open("report.pdf", "wb").write(REPORT)

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
package("text.docx", {
    "word/document.xml": f"""<?xml version="1.0"?><w:document {W}><w:body>
<w:p><w:pPr><w:pStyle w:val="Kop1"/></w:pPr><w:r><w:t>Leases</w:t></w:r></w:p>
<w:p><w:r><w:t>A lease ends </w:t></w:r><w:r><w:t>after </w:t></w:r><w:del><w:r><w:delText>ten</w:delText><w:t>ten</w:t></w:r></w:del><w:r><w:t>thirty seconds &amp; not later.</w:t></w:r></w:p>
<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>Terms</w:t></w:r></w:p>
<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>first item</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Name</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Days</w:t></w:r></w:p></w:tc></w:tr>
<w:tr><w:tc><w:p><w:r><w:t>short</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>7</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
<w:p><w:r><w:t>The end.</w:t></w:r></w:p></w:body></w:document>""",
    "word/styles.xml": f'<w:styles {W}><w:style w:styleId="Kop1"><w:name w:val="heading 1"/></w:style></w:styles>',
    "docProps/core.xml": '<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>About leases</dc:title></cp:coreProperties>',
})

OFFICE = 'xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:draw="d"'
package("text.odt", {
    "mimetype": "application/vnd.oasis.opendocument.text",
    "content.xml": f"""<office:document-content {OFFICE}><office:body><office:text>
<text:h text:outline-level="2">Bridges</text:h><text:p>The bridge is<text:s/>420 metres long.</text:p>
<text:list><text:list-item><text:p>steel</text:p></text:list-item></text:list>
<table:table><table:table-row><table:table-cell><text:p>span</text:p></table:table-cell><table:table-cell><text:p>90</text:p></table:table-cell></table:table-row></table:table>
</office:text></office:body></office:document-content>""",
})

S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
R = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
SHEET = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"


def workbook(sheets):
    files = {"_rels/.rels": f'<Relationships {R}><Relationship Id="r1" Type="{DOCUMENT}" Target="xl/workbook.xml"/></Relationships>', "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'}
    names = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1))
    files["xl/workbook.xml"] = f"<workbook {S}><sheets>{names}</sheets></workbook>"
    links = "".join(f'<Relationship Id="r{n}" Type="{SHEET}" Target="worksheets/sheet{n}.xml"/>' for n in range(1, len(sheets) + 1))
    links += '<Relationship Id="r90" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/>'
    files["xl/_rels/workbook.xml.rels"] = f"<Relationships {R}>{links}</Relationships>"
    files["xl/styles.xml"] = f'<styleSheet {S}><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
    for n, rows in enumerate(sheets.values(), 1):
        data = ""
        for row, cells in rows.items():
            data += f'<row r="{row}">'
            for column, value in cells.items():
                if isinstance(value, str):
                    data += f'<c r="{column}{row}" t="inlineStr"><is><t>{value}</t></is></c>'
                elif isinstance(value, tuple):
                    data += f'<c r="{column}{row}" s="1"><v>{value[0]}</v></c>'
                else:
                    data += f'<c r="{column}{row}"><v>{value}</v></c>'
            data += "</row>"
        files[f"xl/worksheets/sheet{n}.xml"] = f"<worksheet {S}><sheetData>{data}</sheetData></worksheet>"
    return files


package("sales.xlsx", workbook({
    "Budget 2026": {
        1: {"A": "Item", "B": "2025", "C": "2026"},
        2: {"A": "Rent", "B": 1200, "C": 1310.5},
        7: {"A": "Wages", "B": 23000, "C": 24500},
        8: {"A": "Due", "B": (46054,)},
    },
    "Far": {1: {"A": "near"}, 1048576: {"XFD": "far away"}},
}))

package("sums.ods", {
    "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
    "content.xml": f"""<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:spreadsheet><table:table table:name="Sums">
<table:table-row><table:table-cell office:value-type="string"><text:p>Water</text:p></table:table-cell><table:table-cell office:value-type="float" office:value="42.5"><text:p>42.5</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet></office:body></office:document-content>""",
    "META-INF/manifest.xml": '<manifest:manifest xmlns:manifest="m"/>',
})

P = 'xmlns:p="p" xmlns:a="a" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def slide(title, words):
    return f"""<p:sld {P}><p:sp><p:nvPr><p:ph type="title"/></p:nvPr><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:sp>
<p:sp><p:nvPr><p:ph/></p:nvPr><a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:sp></p:sld>"""


package("talk.pptx", {
    "ppt/presentation.xml": f'<p:presentation {P}><p:sldIdLst><p:sldId r:id="r2"/><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>',
    "ppt/_rels/presentation.xml.rels": f'<Relationships {R}><Relationship Id="r1" Target="slides/slide1.xml"/><Relationship Id="r2" Target="slides/slide2.xml"/></Relationships>',
    "ppt/slides/slide1.xml": slide("Second", "Shown after the other one."),
    "ppt/slides/slide2.xml": slide("First", "Turbines turn at 50 hertz."),
    "ppt/notesSlides/notesSlide2.xml": f"<p:notes {P}><p:sp><a:p><a:r><a:t>Say why.</a:t></a:r></a:p></p:sp></p:notes>",
})

package("book.epub", {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
    "OPS/book.opf": """<package xmlns:dc="d"><metadata><dc:title>The Lighthouse</dc:title></metadata><manifest>
<item id="a" href="a.xhtml"/><item id="b" href="text/b%20c.xhtml"/></manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>""",
    "OPS/a.xhtml": "<html><body><h1>Storm</h1><p>The storm lasted nine days.</p></body></html>",
    "OPS/text/b c.xhtml": "<html><head><title>x</title></head><body><h1>Arrival</h1><p>The keeper came\nby boat.</p><p>He stayed.</p></body></html>",
})

json.dump({"nbformat": 4, "cells": [
    {"cell_type": "markdown", "source": ["# Analysis\n", "Of the tides."]},
    {"cell_type": "code", "source": "tide.mean()", "outputs": [{"data": {"text/plain": ["3.25"]}}]},
]}, open("tides.ipynb", "w"))

mail = EmailMessage()
mail["From"], mail["To"], mail["Subject"] = "Ada <ada@example.org>", "bob@example.org", "The würfel"
mail["Date"] = "Fri, 02 Jan 2026 03:04:05 +0000"
mail.set_content("The cube weighs 8 kilograms.\nRegards\n")
mail.add_attachment(REPORT, maintype="application", subtype="pdf", filename="report.pdf")
mail.add_attachment("a,b\n1,2\n", filename="numbers.csv")
for part in mail.walk():
    if part.is_multipart():
        part.set_boundary("=-boundary-of-a-test")
MAIL = mail.as_bytes()
open("cube.eml", "wb").write(MAIL)
second = b"From: c@example.org\nSubject: Again\n\nThe second message.\n"
open("box.mbox", "wb").write(b"From ada Fri Jan  2 03:04:05 2026\n" + second + b"\nFrom bob Fri Jan  2 03:04:05 2026\n" + second.replace(b"second", b"third"))

package("bundle.zip", {
    "docs/guide.md": "# Guide\n\nThe valve opens at 6 bar.\n",
    "docs/page.html": "<h1>Page</h1>\n<p>On the second line.\n",
    "report.pdf": REPORT,
    "../../escape.txt": "It stays inside.\n",
    "blob.bin": bytes(range(256)),
})
with tarfile.open("bundle.tar.gz", "w:gz") as out:
    for name, content in {"notes/a.txt": b"The pump is green.\n", "notes/report.pdf": REPORT}.items():
        info = tarfile.TarInfo(name)
        info.size, info.mtime = len(content), 0
        out.addfile(info, io.BytesIO(content))
