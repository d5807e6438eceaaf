import type { Sources } from './modules.ts'

/** A test whose title ends with the numbers of its rules: `it('refuses a code after 60 seconds (TOKEN-5)')`. */
interface RuleTest {
  readonly file: string
  readonly title: string
  readonly numbers: readonly string[]
}

const RULE = /^- \*\*([A-Z]+-\d+)\*\*/
const TEST_FILE = /(?:\.test|-suite)\.ts$/
const TITLE = /(['"`])((?:\\.|(?!\1).)*) \(([A-Z]+-\d+(?:, [A-Z]+-\d+)*)\)\1/g
/** A test below a rule, as the website has it. */
const LISTED_TEST = /^ {2}- `/m
/** A test in a table: `` `src/smart/scope.test.ts` “part of its title” ``. The title may be omitted. */
const TEST = /`([^`]+(?:\.test|-suite)\.ts)`(?:\s*“([^”]+)”)?/g
/** A document by a number that only people outside the repository can look up. */
const OUTSIDE = /\b(?:contract|issue|checklist) (?:[A-Z]{1,2}-?)?\d[\d.]*/gi
/** A page by its name, in a comment or in prose; links have a check of their own. */
const PAGE = /(?<![\w/.-])[\w./-]*\w\.md\b/g
const PROSE = /^\s*(?:\/?\*|\/\/)/

/** The specification with the tests of each rule below it, for the website. */
export function listTests(specification: string, sources: Sources): string {
  const tests = findRuleTests(sources)
  const lines: string[] = []
  let open: string | undefined
  for (const line of specification.split('\n')) {
    if (open !== undefined && !line.startsWith('  ')) {
      lines.push(...formatTests(tests, open))
      open = undefined
    }
    lines.push(line)
    open = RULE.exec(line)?.[1] ?? open
  }
  return lines.join('\n')
}

function formatTests(tests: readonly RuleTest[], number: string): readonly string[] {
  return tests
    .filter(({ numbers }) => numbers.includes(number))
    .map(({ file, title }) => `  - \`${file}\` “${title}”`)
}

function findRuleTests(sources: Sources): readonly RuleTest[] {
  const files = [...sources.keys()].filter(file => TEST_FILE.test(file)).sort()
  return files.flatMap(file =>
    [...(sources.get(file) ?? '').matchAll(TITLE)].map(([, , title = '', numbers = '']) => ({
      file,
      title: title.replaceAll(/\\(.)/g, '$1'),
      numbers: numbers.split(', '),
    })),
  )
}

/** Rules without a test, tests of a rule that does not exist, two rules with one number, and listed tests, which only the website has. */
export function findRuleFaults(page: string, text: string, sources: Sources): readonly string[] {
  const rules = readNumbers(text)
  const tests = findRuleTests(sources)
  const tested = new Set(tests.flatMap(({ numbers }) => numbers))
  return [
    ...(rules.length === 0 ? [`${page}: has no rules`] : []),
    ...(LISTED_TEST.test(text) ? [`${page}: lists tests, which only the website has`] : []),
    ...rules
      .filter((number, at) => rules.indexOf(number) !== at)
      .map(number => `${page}: ${number} is the number of two rules`),
    ...rules
      .filter(number => !tested.has(number))
      .map(number => `${page}: ${number} has no test, no title ends with its number`),
    ...tests.flatMap(({ file, title, numbers }) =>
      numbers
        .filter(number => !rules.includes(number))
        .map(number => `${file}: the test “${title}” names ${number}, which is not a rule`),
    ),
  ]
}

/** Rows of a table that name no test, or a test that does not exist. */
export function findRowFaults(page: string, text: string, sources: Sources): readonly string[] {
  return readRows(text).flatMap(row => findTestFaults(page, row.split('|')[1]?.trim() ?? '', row, sources))
}

/** Citations of rules that do not exist. */
export function findCitationFaults(specification: string, texts: Sources): readonly string[] {
  const numbers = new Set(readNumbers(specification))
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

function readNumbers(specification: string): readonly string[] {
  return specification.split('\n').flatMap(line => RULE.exec(line)?.[1] ?? [])
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

function findTestFaults(page: string, row: string, text: string, sources: Sources): readonly string[] {
  const tests = [...text.matchAll(TEST)]
  if (tests.length === 0) return [`${page}: ${row} names no test`]
  return tests.flatMap(([, file = '', title]) => {
    const source = sources.get(file)
    if (source === undefined) return [`${page}: ${row} names ${file}, which does not exist`]
    return title === undefined || source.includes(title)
      ? []
      : [`${page}: ${row} names the test “${title}”, which is not in ${file}`]
  })
}
