export const CSV_TYPE = 'text/csv; charset=utf-8'

/** One row (RFC 4180). */
export function formatCsvRow(cells: readonly Cell[]): string {
  return `${cells.map(formatCell).join(',')}\r\n`
}

/** A spreadsheet would run a text that begins with one of these characters as a formula, even after a quotation mark. */
const FORMULA = /^[\s"']*[=+\-@\t\r＝＋－＠]/u

type Cell = string | number | boolean | null | undefined

/** The text of a cell, as `parseCsv` returns it. */
export function formatCellText(value: Cell): string {
  return typeof value === 'string' && FORMULA.test(value) ? `'${value}` : String(value ?? '')
}

function formatCell(value: Cell): string {
  const text = formatCellText(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Reads rows (RFC 4180), whose text arrives in parts. */
export async function* parseCsv(text: AsyncIterable<string>): AsyncGenerator<readonly string[]> {
  let cells: string[] = []
  let cell = ''
  let state: 'plain' | 'quoted' | 'closing' = 'plain'
  for await (const part of text)
    for (const sign of part) {
      if (state === 'quoted') {
        if (sign === '"') state = 'closing'
        else cell += sign
      } else if (sign === '"') {
        // Two quotation marks within quotes are one of the text.
        if (state === 'closing') cell += sign
        state = 'quoted'
      } else if (sign === ',' || sign === '\n') {
        cells.push(cell)
        cell = ''
        state = 'plain'
        if (sign === ',') continue
        yield cells
        cells = []
      } else if (sign !== '\r') cell += sign
    }
  if (cell !== '' || cells.length > 0) yield [...cells, cell]
}
