import { randomUUID } from 'node:crypto'

// Nobody outside knows it, so no text that was sent can pass for a number.
const MARK = `${randomUUID()} `
const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g')

// A number that JSON.parse and JSON.stringify would write otherwise: `1.50`, `1e3`, `-0`, or longer than a double.
const FRAGILE = /[:,[\s](?:-?\d+\.\d*0|-?\d+(?:\.\d+)?[eE][+-]?\d+|-0|-?[\d.]{16,})(?=[\s,\]}])/

/**
 * JSON whose decimals keep their digits (R4 datatypes.html#decimal: 1.50 is not 1.5). A number that would lose some is
 * a marked text until `exactText` writes it. Of a name that stands twice the last one counts, as in JSON.parse: what is
 * judged and what is sent are the same.
 */
export function parseExact(text: string): unknown {
  if (!FRAGILE.test(text)) return JSON.parse(text)
  return JSON.parse(text, (_name, value: unknown, { source }: { readonly source?: string } = {}) =>
    typeof value === 'number' && source !== undefined && String(value) !== source ? MARK + source : value,
  )
}

export function exactText(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes(MARK) ? text.replace(MARKED, '$1') : text
}
