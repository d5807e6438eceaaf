import { succeed } from '../failure.ts'
import { LISTED_RESOURCES } from '../limits.ts'
import { newestFirst } from '../records/newest-first.ts'
import { MedicationRequest } from '../records/resources.ts'
import { searchFhir } from '../records/search-fhir.ts'
import { BundleOf, bundleOf } from './bundle.ts'
import { NoQuery, row } from './row.ts'

export const medicationsRow = row({
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
    const sorted = newestFirst(active, ({ authoredOn }) => authoredOn)
    return succeed(bundleOf({ resources: sorted, total: total - (resources.length - active.length) }))
  },
})
