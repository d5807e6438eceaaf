import type { Sources } from './modules.ts'

/** A rule of docs/specification.md: `` - **SCOPE-3** text ``, and below it its tests, one per line. */
interface Rule {
  readonly number: string
  readonly lines: readonly string[]
}

const RULE = /^- \*\*([A-Z]+-\d+)\*\*/
/** A test: `` `src/smart/scope.test.ts` “part of its title” ``. The title may be omitted. */
const TEST = /`([^`]+(?:\.test|-suite)\.ts)`(?:\s*“([^”]+)”)?/g
/** A document by a number that only people outside the repository can look up. */
const OUTSIDE = /\b(?:contract|issue|checklist) (?:[A-Z]{1,2}-?)?\d[\d.]*/gi
/** A page by its name, in a comment or in prose; links have a check of their own. */
const PAGE = /(?<![\w/.-])[\w./-]*\w\.md\b/g
const PROSE = /^\s*(?:\/?\*|\/\/)/

/** Rules without a test, with a test that does not exist, or with the number of another rule. */
export function findRuleFaults(page: string, text: string, sources: Sources): readonly string[] {
  const rules = readRules(text)
  const numbers = rules.map(({ number }) => number)
  return [
    ...(rules.length === 0 ? [`${page}: has no rules`] : []),
    ...numbers
      .filter((number, at) => numbers.indexOf(number) !== at)
      .map(number => `${page}: ${number} is the number of two rules`),
    ...rules.flatMap(({ number, lines }) => findTestFaults(page, number, lines.join('\n'), sources)),
  ]
}

/** Rows of a table that name no test, or a test that does not exist. */
export function findRowFaults(page: string, text: string, sources: Sources): readonly string[] {
  return readRows(text).flatMap(row => findTestFaults(page, row.split('|')[1]?.trim() ?? '', row, sources))
}

/** Citations of rules that do not exist. */
export function findCitationFaults(specification: string, texts: Sources): readonly string[] {
  const numbers = new Set(readRules(specification).map(({ number }) => number))
  const sections = new Set([...numbers].map(number => number.replace(/-\d+$/, '')))
  const citation = new RegExp(`\\b(?:${[...sections].join('|')})-\\d+\\b`, 'g')
  return [...texts].flatMap(([file, text]) =>
    [...new Set(text.match(citation))]
      .filter(number => !numbers.has(number))
      .map(number => `${file}: cites ${number}, which is not a rule`),
  )
}

/** Citations of documents that are not part of the repository. */
export function findOutsideFaults(texts: Sources, files: readonly string[]): readonly string[] {
  const names = new Set(files.map(file => file.slice(file.lastIndexOf('/') + 1)))
  const isUnknown = (page: string) => !names.has(page.slice(page.lastIndexOf('/') + 1))
  return [...texts].flatMap(([file, text]) => {
    const prose = file.endsWith('.md')
      ? text
      : text
          .split('\n')
          .filter(line => PROSE.test(line))
          .join('\n')
    const cited = [...(text.match(OUTSIDE) ?? []), ...(prose.match(PAGE) ?? []).filter(isUnknown)]
    return cited.map(words => `${file}: cites ${words}, which is not part of the repository`)
  })
}

function readRules(text: string): readonly Rule[] {
  const rules: { number: string; lines: string[] }[] = []
  let open = false
  for (const line of text.split('\n')) {
    const number = RULE.exec(line)?.[1]
    if (number !== undefined) rules.push({ number, lines: [] })
    open = number !== undefined || (open && line.startsWith('  '))
    if (open) rules.at(-1)?.lines.push(line)
  }
  return rules
}

/** The body rows of every table: all but the header and its line of dashes. */
function readRows(text: string): readonly string[] {
  const lines = text.split('\n')
  return lines.filter((line, at) => {
    const isRow = line.startsWith('|')
    const isRule = /^\|[\s:|-]+\|$/.test(line)
    const isHeader = /^\|[\s:|-]+\|$/.test(lines[at + 1] ?? '')
    return isRow && !isRule && !isHeader
  })
}

function findTestFaults(page: string, rule: string, text: string, sources: Sources): readonly string[] {
  const tests = [...text.matchAll(TEST)]
  if (tests.length === 0) return [`${page}: ${rule} names no test`]
  return tests.flatMap(([, file = '', title]) => {
    const source = sources.get(file)
    if (source === undefined) return [`${page}: ${rule} names ${file}, which does not exist`]
    return title === undefined || source.includes(title)
      ? []
      : [`${page}: ${rule} names the test “${title}”, which is not in ${file}`]
  })
}
