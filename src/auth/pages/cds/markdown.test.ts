import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { renderMarkdown } from './markdown.ts'

const A = 'target="_blank" rel="noopener noreferrer"'

function render(text: string): string {
  return String(renderMarkdown(text))
    .replaceAll(/\n(?=<|$)/g, '')
    .replaceAll('<br>\n', '<br>')
}

describe('the Markdown of a card', () => {
  const rows: readonly (readonly [text: string, markup: string])[] = [
    ['one\ntwo\r\n\r\nthree', '<p>one<br>two</p><p>three</p>'],
    ['## Dose ##\ntext', '<p><b>Dose</b></p><p>text</p>'],
    [
      '**bold** __bold__ *em* _em_ ~~out~~ `a*b*`',
      '<p><b>bold</b> <b>bold</b> <em>em</em> <em>em</em> <del>out</del> <code>a*b*</code></p>',
    ],
    ['**a `b` c**', '<p><b>a <code>b</code> c</b></p>'],
    ['snake_case_name and 2 * 3 * 4', '<p>snake_case_name and 2 * 3 * 4</p>'],
    ['\\*no\\* \\<b\\>', '<p>*no* &lt;b&gt;</p>'],
    ['- one\n- two', '<ul><li>one</li><li>two</li></ul>'],
    ['1. one\n2. two\n\ntext', '<ol><li>one</li><li>two</li></ol><p>text</p>'],
    ['- one\n  - inner\n- two', '<ul><li>one<ul><li>inner</li></ul></li><li>two</li></ul>'],
    ['text\n- one', '<p>text</p><ul><li>one</li></ul>'],
    ['> quoted\n> **text**\n\nafter', '<blockquote><p>quoted<br><b>text</b></p></blockquote><p>after</p>'],
    ['```js\n<b>**x**</b>\n```\nafter', '<pre><code>&lt;b&gt;**x**&lt;/b&gt;</code></pre><p>after</p>'],
    ['```\nopen', '<pre><code>open</code></pre>'],
    ['---', '<hr>'],
    [
      '[a *b*](https://a.example/?x=1&y=2)',
      `<p><a href="https://a.example/?x=1&amp;y=2" ${A}>a <em>b</em></a></p>`,
    ],
    [
      '[x](https://a.example/"onclick="alert(1))',
      `<p><a href="https://a.example/%22onclick=%22alert(1)" ${A}>x</a></p>`,
    ],
    [
      '<https://xn--pple-43d.example/>',
      `<p><a href="https://xn--pple-43d.example/" ${A}>https://xn--pple-43d.example/</a></p>`,
    ],
    ['سلام **5** mg', '<p><bdi>سلام</bdi> <b>5</b> mg</p>'],
    ['<https://a.example/>', `<p><a href="https://a.example/" ${A}>https://a.example/</a></p>`],
  ]
  for (const [text, markup] of rows)
    it(`is rendered: ${JSON.stringify(text)} (CDS-6)`, () => {
      assert.equal(render(text), markup)
    })

  it('has tables', () => {
    const table = render('| Drug | Dose |\n|---|:-:|\n| A \\| B | **5** mg |\n| C |\n\nafter')
    assert.match(table, /<th scope="col">Drug<\/th><th scope="col">Dose<\/th>/)
    assert.match(table, /<tr><td>A \| B<\/td><td><b>5<\/b> mg<\/td><\/tr><tr><td>C<\/td><td><\/td><\/tr>/)
    assert.match(table, /<p>after<\/p>$/)
  })

  for (const text of [
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '[x](javascript:alert(1))',
    '[x](http://plain.example/)',
    '[x](https://user:pw@a.example/)',
    '[x](//a.example)',
    '<javascript:alert(1)>',
    '&lt;script&gt;',
    '```\n</code></pre><script>\n```',
    '> <b>\n> - <i>',
  ])
    it(`has no markup of others and no links but https: ${JSON.stringify(text)} (CDS-6)`, () => {
      const markup = String(renderMarkdown(text))
      const own = markup.replaceAll(/<\/?(?:p|br|ul|li|blockquote|pre|code)>/g, '')
      assert.doesNotMatch(own, /</)
    })

  it('shows the text of an image instead of loading it', () => {
    assert.equal(render('![A chart](https://a.example/track.png)'), '<p>A chart</p>')
  })

  it('is shown as plain text, whose lines wrap, if it is nested too deeply', () => {
    assert.equal(render(`${'> '.repeat(30)}a\n<b>`), `<p>${'&gt; '.repeat(30)}a<br>&lt;b&gt;<br></p>`)
  })

  it('has a bounded size and loses no text, however deeply it is nested', () => {
    const head = '|'.repeat(701)
    const wide = `${head}\n${'|-'.repeat(700)}|\n${'|\n'.repeat(900)}`
    const parts = '> |- |>- |[|![|**|*|_a|`|~~|<https://|\\|1. |[a](b |[a]('.split('|')
    const nested = parts.map(part => part.repeat(Math.ceil(4_000 / part.length)))
    for (const text of [...nested, head, wide]) {
      const markup = render(`${text}a\nEND`)
      assert.ok(markup.length < 60_000, text.slice(0, 20))
      assert.match(markup, /END/, text.slice(0, 20))
    }
  })
})
