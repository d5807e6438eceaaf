import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isNarrative } from './narrative.ts'

const div = (content: string) => `<div xmlns="http://www.w3.org/1999/xhtml">${content}</div>`

describe('isNarrative', () => {
  for (const text of [
    div('Some text'),
    div('<p class="x">Some <b>bold</b> text<br/></p>'),
    div('<a href="https://x.example/a?b=1&amp;c=2">link</a> <a href="#note">note</a> <a name="x">y</a>'),
    div('<img src="data:image/png;base64,AAAA" alt="x"/>'),
    div('<!-- a comment --> text'),
    div('<table border="1"><tr><td style="color: red">x</td></tr></table>'),
    `  ${div('x')}\n`,
    "<div xmlns='http://www.w3.org/1999/xhtml' class='x'>y</div>",
    div('a &amp; b &lt; c &gt; d &quot;e&quot; &apos;f&apos; &#160; &#xe9;'),
    div('<kbd>Enter</kbd> <bdo dir="rtl">x</bdo> <address>y</address>'),
    '<div xmlns="http://www.w3.org/1999/xhtml" xmlns:v="urn:x">y</div>',
    div('<p xmlns="http://www.w3.org/1999/xhtml" xmlns:v="urn:x">y</p>'),
  ]) {
    it(`accepts ${text.slice(0, 70)}`, () => assert.equal(isNarrative(text), true))
  }

  for (const text of [
    '',
    'Some text',
    div(''),
    div(' <p> </p> '),
    '<p>text</p>',
    `${div('x')}${div('y')}`,
    `${div('x')} y`,
    div('<script>alert(1)</script>'),
    div('<SCRIPT>alert(1)</SCRIPT>'),
    div('<iframe src="https://x.example"></iframe>'),
    div('<form action="https://x.example"><input name="x"/></form>'),
    div('<b onclick="alert(1)">x</b>'),
    div('<img src="x" onerror="alert(1)"/>'),
    div('<a href="javascript:alert(1)">x</a>'),
    div('<a href=" javascript:alert(1)">x</a>'),
    div('<a href="JaVaScRiPt:alert(1)">x</a>'),
    div('<a href="java&#x09;script:alert(1)">x</a>'),
    div('<a href="javascript&#58;alert(1)">x</a>'),
    div('<a href="javascript&colon;alert(1)">x</a>'),
    div('<a href="data:text/html,&lt;script&gt;">x</a>'),
    div('<img src="data:image/svg+xml,x"/>'),
    div('<a href=javascript:alert(1)>x</a>'),
    div('<b>x'),
    div('<b>x</i>'),
    div('x</b>'),
    div('<br>x'),
    div('a < b'),
    div('<!-- x'),
    div('<svg><circle/></svg>'),
    '<div>x',
    '<divx>y</divx>',
    '<?xml version="1.0"?><div>x</div>',
    '<!DOCTYPE html><div>x</div>',
    div('x<![CDATA[y]]>'),
    '<div>x</div>',
    '<div xmlns="http://www.w3.org/1999/html">x</div>',
    div('<p xmlns="urn:x">y</p>'),
    div('<v:p>y</v:p>'),
    div('a & b'),
    div('a &nbsp; b'),
    div('a &amp b'),
    div('a &#0; b'),
    div('a &#xd800; b'),
    div('a &#x110000; b'),
    div('a ]]> b'),
    div('a \u0001 b'),
    div('a \uffff b'),
    div('a \ud800 b'),
    div('<b title="x" title="y">z</b>'),
    div('<b title="a & b">z</b>'),
    div('<!-- a -- b --> text'),
    div('<a href="&#106;avascript:alert(1)">x</a>'),
  ]) {
    it(`refuses ${text.slice(0, 90)}`, () => assert.equal(isNarrative(text), false))
  }

  it('is fast on hostile megabytes (FHIR-16)', () => {
    const started = process.cpuUsage()
    for (const part of ['<a "', '<b>', '<a href="', '<!--', '< ', '<a   ', '<a x="y" ', '&', '<b/>']) {
      isNarrative(div(part.repeat(1_000_000 / part.length)))
    }
    assert.ok(process.cpuUsage(started).user < 5_000_000)
  })
})
