import { describe } from 'node:test'
import { testBackend } from '../../fhir-api/testing/backend-conformance.ts'
import { startHapi } from './testing/hapi/start-hapi.ts'
import { startRecordedGateway } from './testing/start-gateway.ts'

const NOT_EVALUATED = 'the gateway shows the matches of the server'
const NO_NEXT = 'a fresh page sorted by two keys has no next, and the gateway does not look for more'

describe('the gateway in front of a server with the behaviour of HAPI', () => {
  testBackend({
    gaps: {
      'names the entry whose content is invalid': 'the upstream names its place in its own words',
      'finds bob cy by Patient?_id:not=ann': NOT_EVALUATED,
      'answers Condition?_sort=clinical-status,-recorded-date with c1 c4 c3 c2, also page by page': NO_NEXT,
      'answers Patient?_sort=-birthdate,family with bob ann cy, also page by page': NO_NEXT,
      'answers Observation?_sort=subject,date with o1 o2 o3, also page by page': NO_NEXT,
    },
    lacks: {
      dates: 'ge and le leave a named year or month out; ap, lists and two lower bounds are 400',
      quantities: 'no implicit precision; sa and eb are 400',
      'same-refusals': 'HAPI has its own texts, and 409 for another version',
      'whole-compartments': 'HAPI has no compartment searches',
    },
    start: async options => {
      const upstream = await startHapi()
      const fhir = await startRecordedGateway(upstream.url, options)
      fhir.app.addHook('onClose', () => upstream.close())
      return fhir
    },
  })
})
