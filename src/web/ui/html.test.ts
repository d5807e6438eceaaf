import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { html } from './html.ts'

const OVERRIDE = '\u202e'
const HEBREW = 'יעל'

describe('the texts of a page', () => {
  it('are escaped', () => {
    assert.equal(`${html`<p title="${'"'}">${"<b>&'"}</p>`}`, '<p title="&quot;">&lt;b&gt;&amp;&#39;</p>')
  })

  it('have no controls, in elements and attributes (HTTP-14)', () => {
    const name = `Evil${OVERRIDE}\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u0000\u001b[31m\u009b\u2028\ufeff`
    assert.equal(
      `${html`<p title="${name}">${name} ${[name]}</p>`}`,
      '<p title="Evil[31m">Evil[31m Evil[31m</p>',
    )
  })

  it('keep ends of lines, tabs, and the joiners of Persian and Indic names', () => {
    const text = 'a\tb\r\nc\u200cd\u200de'
    assert.equal(`${html`<pre>${text}</pre>`}`, `<pre>${text}</pre>`)
  })

  it('are isolated if they are written from right to left (HTTP-14)', () => {
    assert.equal(`${html`<p>${HEBREW} 12</p>`}`, `<p><bdi>${HEBREW}</bdi> 12</p>`)
    assert.equal(
      `${html`<p>${`Allow ${HEBREW}, ${HEBREW} ג'${HEBREW} 3?`}</p>`}`,
      `<p>Allow <bdi>${HEBREW}, ${HEBREW} ג&#39;${HEBREW}</bdi> 3?</p>`,
    )
    for (const name of ['محمد', '\u{10900}', '\u{1e900}', 'ﭐ']) {
      assert.equal(`${html`${name}`}`, `<bdi>${name}</bdi>`)
    }
  })

  it('are isolated by characters in a title and an option, which cannot contain elements', () => {
    assert.equal(`${html`<title>${HEBREW} – A</title>`}`, `<title>\u2068${HEBREW}\u2069 – A</title>`)
    assert.equal(
      `${html`<option value="${HEBREW}"${true && html` selected`}>${HEBREW}</option>`}`,
      `<option value="${HEBREW}" selected>\u2068${HEBREW}\u2069</option>`,
    )
  })

  it('are as they were in a field, which sends them back', () => {
    const start = html`id="${HEBREW}"`
    assert.equal(`${start}`, `id="${HEBREW}"`)
    assert.equal(
      `${html`<textarea ${start}>${HEBREW}</textarea>`}`,
      `<textarea id="${HEBREW}">${HEBREW}</textarea>`,
    )
  })
})
