import { Type } from '@sinclair/typebox'
import { succeed } from '../failure.ts'
import { LISTED_RESOURCES } from '../limits.ts'
import { Condition } from '../records/resources.ts'
import { searchFhir } from '../records/search-fhir.ts'
import { sortNewestFirst } from '../records/sort-newest-first.ts'
import { BundleOf, Count, createBundle } from './bundle.ts'
import { defineRow } from './row.ts'

/** The codes of condition-clinical (R4). */
const CLINICAL_STATUS = ['active', 'recurrence', 'relapse', 'inactive', 'remission', 'resolved'] as const

/** By recorded date, newest first. Servers differ in where they put what has no date: so all are read, then sorted and cut. */
export const conditionsRow = defineRow({
  path: '/api/conditions',
  title: 'Conditions',
  description:
    'Conditions of the patient with one clinical status, by recorded date, newest first, undated last.',
  scopes: ['patient/Condition.rs'],
  query: Type.Object({
    status: Type.Union(
      CLINICAL_STATUS.map(code => Type.Literal(code)),
      { default: 'active', description: 'FHIR Condition clinical status.' },
    ),
    _count: Count,
  }),
  body: BundleOf(Condition),
  extendsSession: true,
  answer: async (visit, { status, _count }) => {
    const found = await searchFhir(visit, {
      type: 'Condition',
      schema: Condition,
      params: { 'clinical-status': status, _sort: '-recorded-date' },
      limit: LISTED_RESOURCES,
    })
    if (!found.ok) return found
    const { resources, total } = found.value
    const ofStatus = resources.filter(condition => hasStatus(condition, status))
    const sorted = sortNewestFirst(ofStatus, ({ recordedDate }) => recordedDate)
    const left = resources.length - ofStatus.length
    return succeed(createBundle({ resources: sorted.slice(0, _count), total: total - left }))
  },
})

/** A server that does not know `clinical-status` answers with all: a resolved condition must not be shown as active. */
function hasStatus({ clinicalStatus }: Condition, status: string): boolean {
  return clinicalStatus?.coding?.some(({ code }) => code === status) ?? false
}
