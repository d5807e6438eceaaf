/** One row (RFC 4180). */
export function formatCsvRow(cells: readonly (string | number | boolean | null | undefined)[]): string {
  return `${cells.map(formatCell).join(',')}\r\n`
}

/** A spreadsheet would run a text that begins with one of these characters as a formula, even after a quotation mark. */
const FORMULA = /^[\s"']*[=+\-@\t\r＝＋－＠]/u

function formatCell(value: string | number | boolean | null | undefined): string {
  const text = typeof value === 'string' && FORMULA.test(value) ? `'${value}` : String(value ?? '')
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
