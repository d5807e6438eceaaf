import { FAULT_TABLES } from '../../src/auth/words/faults.ts'
import type { Words } from '../../src/auth/words/reason.ts'
import { REASON_TABLES } from '../../src/auth/words/reasons.ts'

const BEGIN =
  '<!-- Generated from src/fhir/reasons, src/app-reasons and src/auth/words by `npm run reference`. Change the tables there. -->'
const END = '<!-- End of the generated part. -->'

/** docs/errors.md with a table for each table of reasons. */
export function fillReasons(page: string): string {
  const [before = '', rest = ''] = page.split(BEGIN)
  const [, after = ''] = rest.split(END)
  const sections = Object.entries(REASON_TABLES).map(
    ([title, table]) => `### ${title}\n\n${formatTable(table)}`,
  )
  const faults = Object.entries(FAULT_TABLES).map(
    ([title, table]) => `#### ${title}\n\n${formatFaults(table)}`,
  )
  const parts = [...sections, `### Values that are not accepted\n\n${FAULTS_ABOUT}`, ...faults]
  return `${before}${BEGIN}\n\n${parts.join('\n\n')}\n\n${END}${after}`
}

const FAULTS_ABOUT =
  'The text of some reasons contains one or several of these, as *fault* or *faults*. Each says which value is expected.'

function formatFaults(table: Readonly<Record<string, string>>): string {
  const rows = Object.entries(table).map(([reason, text]) => `| \`${reason}\` | ${formatCell(text)} |`)
  return ['| fault | text |', '|---|---|', ...rows].join('\n')
}

type AnyWords = Words & {
  readonly error?: string
  readonly status?: number
  readonly code?: string
  readonly hint?: string
}

function formatTable(table: Readonly<Record<string, AnyWords>>): string {
  const rows = Object.entries(table).map(([reason, words]) => {
    const { error, status, code, sentence, hint, detail, cause, note, remedy } = words
    const said = [sentence, hint, detail && `(${detail})`].filter(text => text).join(' ')
    const why = [cause, note].filter(text => text !== undefined).join(' ')
    const cells = [
      `\`${reason}\``,
      `\`${error ?? [status, code].filter(it => it !== undefined).join(' ')}\``,
      said,
      why,
      remedy,
    ]
    return `| ${cells.map(formatCell).join(' | ')} |`
  })
  return ['| reason | error or status | text | cause | what to do |', '|---|---|---|---|---|', ...rows].join(
    '\n',
  )
}

/** `{name}` stands for a fact, and shows as its name in italics. */
function formatCell(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .replaceAll('*', '\\*')
    .replaceAll('<', '&lt;')
    .replace(/\{(\w+)\}/g, '*$1*')
}
