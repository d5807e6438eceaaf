import { Type } from 'typebox'
import { isFailure } from '../../core/index.ts'
import { Members } from '../../endpoint/index.ts'
import { isResourceType, type Params } from '../../fhir/index.ts'
import { buildUrl } from '../../fhir-api/index.ts'
import { mayUse } from '../grants.ts'
import { CELL_CHARACTERS, MAX_ROWS } from '../limits.ts'
import { adviseOnParameters, listOffered } from '../parameters.ts'
import { describeRow, formatRow } from '../rows.ts'
import { defineTool, failCall, isShortEnough, type ResultPage, type ToolResult } from '../tool.ts'

const ROW = Members({
  reference: Type.String(),
  date: Type.Optional(Type.String()),
  what: Type.String(),
  value: Type.Optional(Type.String()),
  status: Type.Optional(Type.String()),
})

/** Parameters that would change what is returned into something else than rows. */
const UNUSABLE: ReadonlySet<string> = new Set(['_format', '_summary', '_elements', '_count', '_pretty'])

export const search = defineTool({
  name: 'search',
  title: 'Search the record',
  description:
    'Finds resources of one type by FHIR search parameters, newest first with {"_sort": "-date"}. Returns one row each: reference, date, what, value, status. describe_type lists the parameters.',
  input: Members({
    type: Type.String({ description: 'FHIR R4 resource type, such as Observation' }),
    parameters: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 20 })]), {
        description: 'Such as {"category": "laboratory", "date": ["ge2025-01-01", "lt2026-01-01"]}',
      }),
    ),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_ROWS, default: 20 })),
    cursor: Type.Optional(Type.String({ description: 'Of the page before. Send the same type.' })),
  }),
  output: Members({
    rows: Type.Array(ROW),
    total: Type.Optional(Type.Integer()),
    cursor: Type.Optional(Type.String()),
    notes: Type.Optional(Type.Array(Type.String())),
  }),
  isUsableBy: grant => mayUse(grant, 's') || mayUse(grant, 'r'),
  async call(call, { type, parameters = {}, count = 20, cursor }) {
    if (!isResourceType(type)) return failCall(`${JSON.stringify(type)} is not a FHIR R4 resource type.`)
    const unusable = Object.keys(parameters).find(name => UNUSABLE.has(name))
    if (unusable !== undefined) return failCall(`Leave out ${unusable}; use count for the rows.`)
    const page = await call.search(
      cursor === undefined
        ? buildUrl(`/${type}`, [...listPairs(parameters), ['_count', String(count)]])
        : buildUrl(`/${type}`, [[call.pageParameter, cursor]]),
    )
    if (isFailure(page)) {
      const names = Object.keys(parameters)
      if (page.reason !== 'misused' || names.length === 0) return page
      const statement = await call.fetch('/metadata')
      if (isFailure(statement)) return page
      const advice = adviseOnParameters(type, { said: page.text, names }, listOffered(statement, type))
      return advice === undefined ? page : failCall(advice)
    }
    const [, query = ''] = page.next?.split('?') ?? []
    return sayPage(page, new URLSearchParams(query).get(call.pageParameter) ?? undefined)
  },
})

/** With shorter texts where the rows would otherwise be too long. */
function sayPage(page: ResultPage, cursor: string | undefined, most: number = CELL_CHARACTERS): ToolResult {
  const { resources, total, next, notes } = page
  const rows = resources.map(it => describeRow(it, most))
  const content = {
    rows,
    ...(total !== undefined && { total }),
    ...(cursor !== undefined && { cursor }),
    ...(notes.length > 0 && { notes }),
  }
  const text = [...rows.map(formatRow), describeRest(rows.length, total, next), ...notes].join('\n')
  return isShortEnough({ content, text }) || most < 20 ? { content, text } : sayPage(page, cursor, most / 2)
}

function listPairs(parameters: Readonly<Record<string, string | readonly string[]>>): Params {
  return Object.entries(parameters).flatMap(([name, values]) =>
    [values].flat().map(value => [name, value] as const),
  )
}

function describeRest(shown: number, total: number | undefined, next: string | undefined): string {
  const known = total === undefined ? '' : ` of ${total}`
  if (shown === 0) return 'Nothing found.'
  return next === undefined ? `${shown}${known}, no more.` : `${shown}${known}; for more, send the cursor.`
}
