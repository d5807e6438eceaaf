import { type Html, html } from '../../../web/ui/index.ts'
import { readWebUrl } from './call-service.ts'

/** A quote or a list in another one. Deeper ones are shown as text. */
const MAX_DEPTH = 4

/**
 * Renders the parts of GitHub Flavored Markdown that a card needs: paragraphs, headings, lists, quotes, tables, code,
 * emphasis and https links. Images become their texts. Everything else, HTML too, is shown as it is, escaped.
 */
export function renderMarkdown(text: string): Html {
  return renderBlocks(text.replaceAll('\r', '').split('\n'), 0)
}

const HEADING = /^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$/
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/
const FENCE = /^ {0,3}(```|~~~)/
const QUOTE = /^ {0,3}> ?/
const ITEM = /^( {0,3}(?:[-*+]|\d{1,9}[.)])\s+)(.*)$/
const NUMBERED = /^ {0,3}\d/
const DELIMITERS = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/

function renderBlocks(lines: readonly string[], depth: number): Html {
  const blocks: Html[] = []
  for (let at = 0; at < lines.length; ) {
    const [length, block] = renderBlock(lines.slice(at), depth)
    blocks.push(block)
    at += length
  }
  return html`${blocks}`
}

/** The number of lines of the first block, and the block. */
function renderBlock(lines: readonly string[], depth: number): readonly [length: number, block: Html] {
  const [line = '', second = ''] = lines
  if (line.trim() === '') return [1, html``]
  const heading = HEADING.exec(line)
  if (heading) return [1, html`<p><b>${renderInline(heading[1] ?? '')}</b></p>`]
  if (RULE.test(line)) return [1, html`<hr>`]
  if (FENCE.test(line)) return renderCode(lines)
  if (line.includes('|') && DELIMITERS.test(second)) return renderTable(lines)
  if (depth < MAX_DEPTH && QUOTE.test(line)) return renderQuote(lines, depth)
  if (depth < MAX_DEPTH && ITEM.test(line)) return renderList(lines, depth)
  const length = countUntil(lines, other => other.trim() === '' || startsBlock(other))
  return [length, renderParagraph(lines.slice(0, length))]
}

function startsBlock(line: string): boolean {
  return [HEADING, RULE, FENCE, QUOTE, ITEM].some(start => start.test(line))
}

/** The number of lines before the first one, except the very first, that matches. */
function countUntil(lines: readonly string[], isEnd: (line: string) => boolean): number {
  const end = lines.findIndex((line, at) => at > 0 && isEnd(line))
  return end < 0 ? lines.length : end
}

function renderParagraph(lines: readonly string[]): Html {
  return html`<p>${lines.map((line, at) => html`${at > 0 && html`<br>`}${renderInline(line.trim())}`)}</p>`
}

function renderCode(lines: readonly string[]): readonly [number, Html] {
  const [, fence = ''] = FENCE.exec(lines[0] ?? '') ?? []
  const length = countUntil(lines, line => line.trim().startsWith(fence))
  return [length + 1, html`<pre><code>${lines.slice(1, length).join('\n')}</code></pre>`]
}

function renderQuote(lines: readonly string[], depth: number): readonly [number, Html] {
  const length = countUntil(lines, line => !QUOTE.test(line))
  const inner = lines.slice(0, length).map(line => line.replace(QUOTE, ''))
  return [length, html`<blockquote>${renderBlocks(inner, depth + 1)}</blockquote>`]
}

/** Items of one kind. Lines that are indented as far as its text belong to an item. */
function renderList(lines: readonly string[], depth: number): readonly [number, Html] {
  const isNumbered = NUMBERED.test(lines[0] ?? '')
  const items: string[][] = []
  let width = 0
  const length = countUntil(['', ...lines], line => {
    if (items.length > 0 && (line.trim() === '' || line.startsWith(' '.repeat(width)))) {
      items.at(-1)?.push(line.slice(width))
      return false
    }
    const [, marker = '', text = ''] = ITEM.exec(line) ?? []
    if (marker === '' || NUMBERED.test(line) !== isNumbered || RULE.test(line)) return true
    width = marker.length
    items.push([text])
    return false
  })
  const content = items.map(item => html`<li>${renderItem(item, depth + 1)}</li>`)
  return [length - 1, isNumbered ? html`<ol>${content}</ol>` : html`<ul>${content}</ul>`]
}

/** An item of one line is no paragraph. */
function renderItem(lines: readonly string[], depth: number): Html {
  const [first = '', ...others] = lines
  return html`${renderInline(first.trim())}${others.some(line => line.trim() !== '') && renderBlocks(others, depth)}`
}

/** A row has only its own cells: many short rows below many heads would become a very long page. */
function renderTable(lines: readonly string[]): readonly [number, Html] {
  const length = countUntil(lines, line => !line.includes('|'))
  const [head = [], , ...rows] = lines.slice(0, length).map(splitCells)
  return [
    length,
    html`<table class="table"><thead><tr>${head.map(cell => html`<th scope="col">${renderInline(cell)}</th>`)}</tr></thead>
<tbody>${rows.map(row => html`<tr>${row.slice(0, head.length).map(cell => html`<td>${renderInline(cell)}</td>`)}</tr>`)}</tbody></table>`,
  ]
}

function splitCells(line: string): readonly string[] {
  const inner = line
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
  return inner.split(/(?<!\\)\|/).map(cell => cell.replaceAll('\\|', '|').trim())
}

/** Each alternative ends at the next sign of its own, so that the time is linear. */
const INLINE = new RegExp(
  [
    '`(?<code>[^`]+)`',
    '\\*\\*(?<strong>[^*]+)\\*\\*',
    '(?<!\\w)__(?<strong2>[^_]+)__(?!\\w)',
    '\\*(?<em>[^*\\s][^*]*)\\*',
    '(?<!\\w)_(?<em2>[^_\\s][^_]*)_(?!\\w)',
    '~~(?<del>[^~]+)~~',
    '!\\[(?<image>[^[\\]]*)\\]\\([^()\\s]*\\)',
    '\\[(?<label>[^[\\]]+)\\]\\((?<target>[^()\\s]+)\\)',
    '<(?<link>https://[^\\s<>]+)>',
    '\\\\(?<sign>[!-/:-@[-`{-~])',
  ].join('|'),
  'g',
)

function renderInline(text: string): Html {
  const parts: (Html | string)[] = []
  let end = 0
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(end, found.index), renderPart(found[0], found.groups ?? {}))
    end = found.index + found[0].length
  }
  return html`${parts}${text.slice(end)}`
}

function renderPart(whole: string, groups: Readonly<Record<string, string | undefined>>): Html {
  const { code, strong = groups.strong2, em = groups.em2, del, image, label, target, link, sign } = groups
  if (code !== undefined) return html`<code>${code}</code>`
  if (strong !== undefined) return html`<b>${renderInline(strong)}</b>`
  if (em !== undefined) return html`<em>${renderInline(em)}</em>`
  if (del !== undefined) return html`<del>${renderInline(del)}</del>`
  if (image !== undefined) return html`${image}`
  const url = readSafeUrl(target ?? link)
  if (url !== undefined) return renderOutside(url, label ?? url)
  return html`${sign ?? whole}`
}

function readSafeUrl(text: string | undefined): string | undefined {
  const url = readWebUrl(text)
  return url !== undefined && URL.parse(url)?.protocol === 'https:' ? url : undefined
}

/** A link to a page of others, in a new window that cannot reach this one. */
export function renderOutside(url: string, label: string): Html {
  return html`<a href="${url}" target="_blank" rel="noopener noreferrer">${label}</a>`
}
