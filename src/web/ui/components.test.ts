import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  html,
  renderChoice,
  renderContact,
  renderField,
  renderHidden,
  renderSearchForm,
  renderTable,
} from './index.ts'

describe('renderTable', () => {
  const columns = ['Name', { head: 'Ends by', label: 'Ends' }, { head: 'Action', isHidden: true }]
  const rows = [['<a>', html`<b>now</b>`, 'End']]
  const { markup } = renderTable({ caption: 'All & more', kind: 'table--stack', columns }, rows)

  it('names each row by its first cell, and labels the others for narrow screens', () => {
    assert.match(markup, /<caption class="sr">All &amp; more<\/caption>/)
    assert.match(markup, /<th role="rowheader" scope="row">&lt;a&gt;<\/th>/)
    assert.match(markup, /<td role="cell" data-label="Ends"><b>now<\/b><\/td>/)
  })

  it('shows a hidden head to screen readers only', () => {
    assert.match(markup, /<th role="columnheader" scope="col"><span class="sr">Action<\/span><\/th>/)
    assert.match(markup, /<td role="cell">End<\/td>/)
  })

  it('has no row heads if its rows have no name', () => {
    const options = { caption: 'Log', kind: '', columns: [{ head: 'Time', isNowrap: true }], isUnnamed: true }
    const log = renderTable(options, [['12:00']]).markup
    assert.match(log, /<td role="cell" data-label="Time" class="nowrap">12:00<\/td>/)
    assert.doesNotMatch(log, /rowheader/)
  })
})

describe('renderField', () => {
  it('is described by its error, then by its hint', () => {
    const field = { name: 'intent', label: 'Intent', error: 'Too long', hint: 'One word' }
    for (const rows of [undefined, 3]) {
      const { markup } = renderField({ ...field, rows, value: '"' })
      assert.match(markup, /aria-invalid="true" aria-describedby="intent-error intent-hint"/)
      assert.match(markup, rows === undefined ? /<input [^>]*value="&quot;"/ : /rows="3">&quot;<\/textarea>/)
    }
  })
})

describe('renderHidden', () => {
  it('leaves out what is undefined, and keeps what is empty', () => {
    assert.equal(renderHidden({ a: undefined, b: '' }).join(''), '<input type="hidden" name="b" value="">')
  })
})

describe('renderSearchForm', () => {
  it('keeps the other parameters of the page', () => {
    const options = {
      action: '/portal',
      label: 'Find',
      value: 'x',
      maxCharacters: 100,
      hidden: { client: 'c' },
    }
    assert.match(
      renderSearchForm(options).markup,
      /action="\/portal"><input type="hidden" name="client" value="c">/,
    )
  })
})

describe('renderChoice', () => {
  it('has an explanation only if there is one', () => {
    const choice = { type: 'radio', name: 'kind', value: '', isChecked: true, text: 'None' } as const
    assert.match(
      renderChoice(choice).markup,
      /value="" checked><span class="choice__main">None<\/span><\/label>/,
    )
    assert.match(renderChoice({ ...choice, meta: 'Why' }).markup, /<span class="choice__meta">Why<\/span>/)
  })
})

describe('renderContact', () => {
  it('links an email address or an https URL, and nothing else', () => {
    const cases = [
      ['IT, 555 0100', 'IT, 555 0100'],
      ['IT (help@a.example)', 'IT (<a href="mailto:help@a.example">help@a.example</a>)'],
      ['See https://a.example/@help.', 'See <a href="https://a.example/@help">https://a.example/@help</a>.'],
      ['javascript:alert(1) <b>', 'javascript:alert(1) &lt;b&gt;'],
    ] as const
    for (const [text, markup] of cases) assert.equal(renderContact(text).markup, markup)
  })
})
