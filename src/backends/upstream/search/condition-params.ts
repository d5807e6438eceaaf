import { isDeepStrictEqual } from 'node:util'
import { findSearchParameter, type Params } from '../../../fhir/index.ts'
import type { AccessFilter, Constraint } from '../../../smart/index.ts'
import { LIST_VALUES } from '../limits.ts'
import { buildMembershipParams } from './membership-params.ts'

/** An access filter as parameters of a condition; undefined where they do not express all of it. */
export function buildExactParams(type: string, filter: AccessFilter): Params | undefined {
  if (filter === 'everything') return []
  const [first, another] = filter
  if (!first || filter.some(({ panel }) => panel) || !isOneQuery(filter)) return undefined
  const query = first.query ?? []
  const patients = filter.map(({ patient }) => patient)
  if (patients.every(it => it !== undefined)) {
    const patientParams = buildMembershipParams(type, [...new Set(patients)])
    return patientParams.length === 0 ? undefined : [...patientParams, ...query]
  }
  if (another) return undefined
  return first.id === undefined || type === 'Patient' ? query : [['_id', first.id], ...query]
}

/** Whether all constraints have the same query, and it is short enough to be sent. */
function isOneQuery(filter: readonly Constraint[]): boolean {
  const [first] = filter
  const values = first?.query?.reduce((sum, [, value]) => sum + value.split(',').length, 0) ?? 0
  const isFirst = ({ query }: Constraint) => query === first?.query || isDeepStrictEqual(query, first?.query)
  return values <= LIST_VALUES && filter.every(isFirst)
}

const DAY = /^(?:[a-z]{2})?\d{4}-\d{2}-\d{2}/

/**
 * Which clauses of a condition any upstream reads like the gateway. Servers differ in dates without a day, in lists and
 * repetitions of dates, in quantities and in modifiers.
 */
export function createSendable(type: string, own: Params): (param: Params[number]) => boolean {
  const names = new Set(own.map(([name]) => name.split(':')[0]))
  return ([name, value]) => {
    if (name.includes(':') || name.includes('.')) return false
    switch (findSearchParameter(type, name)?.type) {
      case 'date':
        return DAY.test(value) && !value.includes(',') && !names.has(name)
      case 'number':
      case 'quantity':
        return false
      default:
        return true
    }
  }
}
