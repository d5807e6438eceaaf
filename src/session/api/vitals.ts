import { Type } from '@sinclair/typebox'
import { succeed } from '../failure.ts'
import { Observation } from '../records/resources.ts'
import { searchFhir } from '../records/search-fhir.ts'
import { sortNewestFirst } from '../records/sort-newest-first.ts'
import { BundleOf, Count, createBundle } from './bundle.ts'
import { defineRow } from './row.ts'

/** Vital signs (API-8). There may be years of them: the FHIR server sorts, and only the newest are read. */
export const vitalsRow = defineRow({
  path: '/api/vitals',
  title: 'Vital signs',
  description: 'Vital-signs Observations of the patient, newest first.',
  scopes: ['patient/Observation.rs'],
  query: Type.Object({
    code: Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,7}-[0-9]$',
        description: 'A LOINC code, such as 85354-9 for blood pressure.',
      }),
    ),
    _count: Count,
  }),
  body: BundleOf(Observation),
  extendsSession: true,
  answer: async (visit, { code, _count }) => {
    const found = await searchFhir(visit, {
      type: 'Observation',
      schema: Observation,
      params: {
        category: 'vital-signs',
        ...(code === undefined ? {} : { code: `http://loinc.org|${code}` }),
        _sort: '-date',
      },
      limit: _count,
    })
    if (!found.ok) return found
    const { resources, total } = found.value
    return succeed(createBundle({ resources: sortNewestFirst(resources, findEffectiveTime), total }))
  },
})

/** When it was measured, whichever way the record says it. */
export function findEffectiveTime(observation: Observation): string | undefined {
  const { effectiveDateTime, effectiveInstant, effectivePeriod } = observation
  return effectiveDateTime ?? effectiveInstant ?? effectivePeriod?.end ?? effectivePeriod?.start
}
