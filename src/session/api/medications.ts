import { succeed } from '../failure.ts'
import { LISTED_RESOURCES } from '../limits.ts'
import { MedicationRequest } from '../records/resources.ts'
import { searchFhir } from '../records/search-fhir.ts'
import { sortNewestFirst } from '../records/sort-newest-first.ts'
import { BundleOf, createBundle } from './bundle.ts'
import { defineRow, NoQuery } from './row.ts'

export const medicationsRow = defineRow({
  path: '/api/medications',
  title: 'Medications',
  description: `Active MedicationRequests of the patient, newest first; at most ${LISTED_RESOURCES}.`,
  scopes: ['patient/MedicationRequest.rs'],
  query: NoQuery,
  body: BundleOf(MedicationRequest),
  extendsSession: true,
  answer: async visit => {
    const found = await searchFhir(visit, {
      type: 'MedicationRequest',
      schema: MedicationRequest,
      params: { status: 'active' },
      limit: LISTED_RESOURCES,
    })
    if (!found.ok) return found
    const { resources, total } = found.value
    const active = resources.filter(({ status }) => status === 'active')
    const sorted = sortNewestFirst(active, ({ authoredOn }) => authoredOn)
    return succeed(createBundle({ resources: sorted, total: total - (resources.length - active.length) }))
  },
})
