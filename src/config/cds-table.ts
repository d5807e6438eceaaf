import { cdsServices } from './cds-services.ts'
import { defineDerived, none } from './setting-row.ts'

export const cdsTable = {
  'cds.services': defineDerived({
    name: 'smart.cds.services',
    type: cdsServices,
    otherwise: 'none',
    replaces: ['smart.cds.url', 'smart.cds.service', 'smart.cds.name', 'smart.cds.client-id'],
    about:
      'CDS services that the portal calls when a clinician picks a patient, as a [list](how-to/cds-hooks.md). A variable has it as JSON.',
    derive: none,
  }),
}
