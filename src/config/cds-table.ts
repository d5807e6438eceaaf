import { cdsServices, serviceId } from './cds-services.ts'
import { defineOpen } from './setting-row.ts'
import * as types from './setting-types.ts'

export const cdsTable = {
  cdsServices: defineOpen({
    name: 'smart.cds.services',
    env: 'SMART_CDS_SERVICES',
    type: cdsServices,
    otherwise: 'none',
    about:
      'CDS services that the portal calls when a clinician picks a patient, as a [list](how-to/cds-hooks.md).',
    of: ({ cds }) => (cds.services.length === 0 ? undefined : cds.services.map(service => service.id)),
  }),
  cdsUrl: defineOpen({
    name: 'smart.cds.url',
    env: 'SMART_CDS_URL',
    type: types.baseAddress,
    otherwise: 'none',
    about: 'Base URL of a single CDS service, which needs no list.',
    of: ({ cds }) => cds.single.url,
  }),
  cdsService: defineOpen({
    name: 'smart.cds.service',
    env: 'SMART_CDS_SERVICE',
    type: serviceId,
    otherwise: 'none',
    about: 'Id of the single service: it is called at `{url}/cds-services/{id}`.',
    of: ({ cds }) => cds.single.id,
  }),
  cdsName: defineOpen({
    name: 'smart.cds.name',
    env: 'SMART_CDS_NAME',
    type: types.headerText,
    otherwise: 'the id',
    about: 'Name of the single service in the portal.',
    of: ({ cds }) => cds.single.name,
  }),
  cdsClientId: defineOpen({
    name: 'smart.cds.client-id',
    env: 'SMART_CDS_CLIENT_ID',
    type: types.clientId,
    otherwise: 'none',
    about: 'Client whose registered `patient/` scopes the single service gets.',
    of: ({ cds }) => cds.single.clientId,
  }),
}
