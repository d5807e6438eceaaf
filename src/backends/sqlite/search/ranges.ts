import type { Comparison } from '../../../fhir/index.ts'
import { name, type Sql, sql } from './sql.ts'

/**
 * A comparison of stored stretches (two columns, both ends inclusive) with one that was asked, as `compare` of the
 * fhir room has it (R4 search.html#prefix).
 */
export function buildComparison(
  { prefix, low, high }: Comparison,
  lowColumn: string,
  highColumn: string,
): Sql {
  const [from, to] = [name(lowColumn), name(highColumn)]
  switch (prefix) {
    case 'eq':
      return sql`${from} >= ${low} AND ${to} <= ${high}`
    case 'ne':
      return sql`(${from} < ${low} OR ${to} > ${high})`
    case 'gt':
      return sql`${to} > ${high}`
    case 'ge':
      return sql`(${to} > ${high} OR (${from} >= ${low} AND ${to} <= ${high}))`
    case 'lt':
      return sql`${from} < ${low}`
    case 'le':
      return sql`(${from} < ${low} OR (${from} >= ${low} AND ${to} <= ${high}))`
    case 'sa':
      return sql`${from} > ${high}`
    case 'eb':
      return sql`${to} < ${low}`
    case 'ap':
      return sql`${from} <= ${high} AND ${to} >= ${low}`
  }
}
