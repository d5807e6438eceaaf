import MarkdownIt, { type Token } from 'markdown-it'
import { type Html, html, raw } from '../../../web/ui/index.ts'
import { readWebUrl } from './call-service.ts'

/** Quotes, lists and items in each other. markdown-it drops the text below. */
const MAX_NESTING = 20
/** markdown-it completes each row of a table to the width of its head: 65,536 cells take 0.4 s. */
const MAX_CELLS = 4_000

const markdown = new MarkdownIt({ html: false, breaks: true, maxNesting: MAX_NESTING })
markdown.validateLink = url => readWebUrl(url) !== undefined && URL.parse(url)?.protocol === 'https:'
/** An address is shown as it is: decoded, it could look like another one. */
markdown.normalizeLinkText = url => url
Object.assign(markdown.renderer.rules, {
  text: show(({ content }) => html`${content}`),
  code_inline: show(({ content }) => html`<code>${content}</code>`),
  code_block: show(({ content }) => html`<pre><code>${content}</code></pre>`),
  fence: show(({ content }) => html`<pre><code>${content}</code></pre>`),
  image: show(({ content }) => html`${content}`),
  link_open: show(token => openOutside(String(token.attrGet('href')))),
  heading_open: () => '<p><b>',
  heading_close: () => '</b></p>',
  strong_open: () => '<b>',
  strong_close: () => '</b>',
  s_open: () => '<del>',
  s_close: () => '</del>',
  table_open: () => '<table class="table">',
  th_open: () => '<th scope="col">',
  td_open: () => '<td>',
})

/** Every text on a page passes through `html`. */
function show(render: (token: Token) => Html) {
  return (tokens: readonly Token[], at: number) =>
    tokens
      .slice(at, at + 1)
      .map(render)
      .join('')
}

/**
 * Renders the GitHub Flavored Markdown of a card. Headings are bold, images become their texts, and links lead to https
 * addresses only. HTML is shown as text, and so is the whole card if it would become too large or lose a part.
 */
export function renderMarkdown(text: string): Html {
  const tokens = countCells(text) > MAX_CELLS ? [] : markdown.parse(text, {})
  const isWhole = tokens.every(({ level }) => level < MAX_NESTING - 1)
  return tokens.length > 0 && isWhole
    ? raw(markdown.renderer.render(tokens, markdown.options, {}))
    : html`<p>${text.split('\n').map(line => html`${line}<br>`)}</p>`
}

/** The cells of the largest table that the text could be. */
function countCells(text: string): number {
  const lines = text.split('\n')
  return lines.length * Math.max(...lines.map(line => line.split('|').length))
}

/** A link to a page of others, in a new window that cannot reach this one. */
export function renderOutside(url: string, label: string): Html {
  return html`${openOutside(url)}${label}</a>`
}

function openOutside(url: string): Html {
  return html`<a href="${url}" target="_blank" rel="noopener noreferrer">`
}
