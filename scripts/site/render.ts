import { posix } from 'node:path'
import MarkdownIt, { type Token } from 'markdown-it'
import { type Html, raw } from '../../src/web/ui/html.ts'
import { linkTo, nameOutput } from './paths.ts'

export interface Heading {
  readonly level: number
  readonly text: string
  readonly id: string
}

export interface Rendered {
  readonly title: string
  readonly content: Html
  readonly headings: readonly Heading[]
}

/** Below each rule is a list of its tests, which most readers skip. */
export const SPECIFICATION = 'docs/specification.md'

/** The pages are our own, so HTML in them stays as it is. */
const markdown = new MarkdownIt({ html: true })
markdown.renderer.rules.table_open = () => '<div class="scroll"><table>'
markdown.renderer.rules.table_close = () => '</table></div>'
markdown.renderer.rules.folded_list_open = () => '<details class="tests"><summary>Tests</summary><ul>'
markdown.renderer.rules.folded_list_close = () => '</ul></details>'

/** `isPage` tells whether a file of the project is a page of the website. */
export function renderMarkdown(text: string, source: string, isPage: (path: string) => boolean): Rendered {
  const tokens = markdown.parse(text, {})
  const headings = nameHeadings(tokens)
  if (source === SPECIFICATION) foldLists(tokens)
  for (const { children } of tokens) if (children) moveLinks(children, source, isPage)
  return {
    title: headings.find(({ level }) => level === 1)?.text ?? source,
    content: raw(markdown.renderer.render(tokens, markdown.options, {})),
    headings: headings.filter(({ level }) => level === 2),
  }
}

/** Lists inside of lists are shown on demand. */
function foldLists(tokens: readonly Token[]): void {
  for (const token of tokens) {
    if (token.level === 0) continue
    if (token.type === 'bullet_list_open') token.type = 'folded_list_open'
    if (token.type === 'bullet_list_close') token.type = 'folded_list_close'
  }
}

function nameHeadings(tokens: readonly Token[]): readonly Heading[] {
  const taken = new Set<string>()
  return tokens.flatMap((token, at) => {
    if (token.type !== 'heading_open') return []
    const text = (tokens[at + 1]?.content ?? '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')
    const id = makeAnchor(text, taken)
    token.attrSet('id', id)
    return [{ level: Number(token.tag.slice(1)), text, id }]
  })
}

/** As GitHub makes it, because the pages link to it. */
function makeAnchor(text: string, taken: Set<string>): string {
  const base = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
  let anchor = base
  for (let count = 1; taken.has(anchor); count++) anchor = `${base}-${count}`
  taken.add(anchor)
  return anchor
}

/** A link to a page leads to its HTML. Other files of the project are not on the website: their names stay, without a link. */
function moveLinks(tokens: Token[], source: string, isPage: (path: string) => boolean): void {
  let isUnlinked = false
  for (const token of tokens) {
    if (token.type === 'link_close' && isUnlinked) hide(token)
    if (token.type !== 'link_open') continue
    const href = String(token.attrGet('href') ?? '')
    isUnlinked = false
    if (/^[a-z][a-z0-9+.-]*:|^#/i.test(href)) continue
    const [file = '', anchor] = href.split('#')
    const target = posix.join(posix.dirname(source), file)
    isUnlinked = !isPage(target)
    if (isUnlinked) hide(token)
    else token.attrSet('href', linkTo(nameOutput(source), nameOutput(target)) + (anchor ? `#${anchor}` : ''))
  }
}

function hide(token: Token): void {
  token.type = 'text'
  token.tag = ''
  token.content = ''
}
