import { formatExact, parseExact, shapeResponse } from '../../fhir/index.ts'
import type { ExportRow } from '../backend.ts'
import type { ExportOrder } from '../exports.ts'

/** A line of a file: the resource as stored, as far as the client wants it. */
export function formatLine(row: ExportRow, { elements }: ExportOrder, baseUrl: string): string {
  const wanted = listElements(elements, row.type)
  const text =
    wanted.length === 0 ? row.text : shapeResponse(row.text, { summary: 'false', elements: wanted })
  return addBase(toLine(text), baseUrl)
}

/** JSON without line breaks. */
export function toLine(text: string): string {
  return text.includes('\n') ? formatExact(parseExact(text)) : text
}

function listElements(elements: readonly string[], type: string): readonly string[] {
  return elements.flatMap(it => {
    const [of, element] = it.includes('.') ? it.split('.') : [type, it]
    return of === type && element !== undefined ? [element] : []
  })
}

/** The URL of an attachment is absolute, so that it can be opened (Bulk Data Access 3.0.0, Attachments). */
function addBase(text: string, baseUrl: string): string {
  return text.includes('Binary/') ? text.replace(ATTACHED, `$1${baseUrl}/Binary/`) : text
}

// In JSON the quotation marks of a text are escaped, so that this is a member and not a part of a text.
const ATTACHED = /("url"\s*:\s*")Binary\//g

/** A line about a resource that was deleted (Bulk Data Access 3.0.0, Output Manifest). */
export function formatDeletion({ type, id }: ExportRow): string {
  return JSON.stringify({
    resourceType: 'Bundle',
    type: 'transaction',
    entry: [{ request: { method: 'DELETE', url: `${type}/${id}` } }],
  })
}

/** The line before the resources of a patient (Bulk Data Access 3.0.0, Bulk Data Output File Organization). */
export function formatHeader(patient: string | undefined): string {
  const valueReference = { reference: `Patient/${patient}` }
  return JSON.stringify({ resourceType: 'Parameters', parameter: [{ name: 'header', valueReference }] })
}
