import {
  getOperationDefinition,
  listOperations,
  listSearchParameters,
  operations,
  resourceTypes,
} from '../../fhir/index.ts'
import {
  AUDIT_SECTION,
  COMPARTMENTS,
  createSecuritySection,
  describeParameters,
  SYSTEM_INTERACTIONS,
  TYPE_INTERACTIONS,
} from '../../fhir-api/index.ts'
import { version } from '../../web/index.ts'

// The statement changes with the software version only.
const DATE = '2026-01-01'

/** The CapabilityStatement as JSON, built again only when the SMART configuration has changed. */
export function createCapabilities(baseUrl: string, smartConfiguration: () => object): () => string {
  let last: { readonly from: string; readonly json: string } | undefined
  return () => {
    const configuration = smartConfiguration()
    const from = JSON.stringify(configuration)
    if (last?.from !== from)
      last = { from, json: JSON.stringify(describeCapabilities(baseUrl, configuration)) }
    return last.json
  }
}

/** All types are alike except AuditEvent; each has the search parameters that are indexed. */
function describeCapabilities(baseUrl: string, smartConfiguration: object): object {
  return {
    resourceType: 'CapabilityStatement',
    status: 'active',
    date: DATE,
    kind: 'instance',
    software: { name: 'Sallyport', version },
    implementation: { description: 'Sallyport FHIR R4 server', url: baseUrl },
    fhirVersion: '4.0.1',
    format: ['application/fhir+json', 'json'],
    patchFormat: ['application/json-patch+json', 'application/fhir+json'],
    rest: [
      {
        mode: 'server',
        security: createSecuritySection(smartConfiguration),
        resource: resourceTypes.map(describeType),
        interaction: SYSTEM_INTERACTIONS.map(code => ({ code })),
        searchParam: describeParameters('Basic').filter(({ name }) => name.startsWith('_')),
        compartment: COMPARTMENTS,
      },
    ],
  }
}

function describeType(type: string): object {
  if (type === AUDIT_SECTION.type) return AUDIT_SECTION
  const references = listSearchParameters(type).filter(it => it.type === 'reference')
  return {
    type,
    interaction: TYPE_INTERACTIONS.map(code => ({ code })),
    versioning: 'versioned-update',
    readHistory: true,
    updateCreate: true,
    conditionalCreate: true,
    conditionalRead: 'full-support',
    conditionalUpdate: true,
    conditionalDelete: 'single',
    referencePolicy: ['literal', 'local'],
    ...(references.length > 0 && { searchInclude: references.map(({ code }) => `${type}:${code}`) }),
    searchParam: describeParameters(type),
    operation: listOperations(operations, type).map(name => ({
      name,
      definition: getOperationDefinition(type, name),
    })),
  }
}
