import { listProfiles, listSearchParameters } from '../fhir/index.ts'

const OAUTH_URIS = 'http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris'
const SERVICES = 'http://terminology.hl7.org/CodeSystem/restful-security-service'

// The names of the extension's parts, and where the SMART configuration has the same URL.
const ADDRESSES = {
  authorize: 'authorization_endpoint',
  token: 'token_endpoint',
  register: 'registration_endpoint',
  manage: 'management_endpoint',
  introspect: 'introspection_endpoint',
  revoke: 'revocation_endpoint',
} as const

/** The interactions of a type that the FHIR API implements. */
export const TYPE_INTERACTIONS: readonly string[] = [
  'read',
  'vread',
  'update',
  'patch',
  'delete',
  'history-instance',
  'history-type',
  'create',
  'search-type',
]

/** Interactions of the whole server. */
export const SYSTEM_INTERACTIONS: readonly string[] = [
  'transaction',
  'batch',
  'search-system',
  'history-system',
]

/** SMART's part of `metadata`, for clients that do not read the discovery document. */
export function createSecuritySection(smartConfiguration: object): object {
  const known = new Map<string, unknown>(Object.entries(smartConfiguration))
  const extension = Object.entries(ADDRESSES).flatMap(([url, name]) => {
    const address = known.get(name)
    return typeof address === 'string' ? [{ url, valueUri: address }] : []
  })
  return {
    ...(extension.length > 0 && { extension: [{ url: OAUTH_URIS, extension }] }),
    cors: true,
    service: [
      {
        coding: [{ system: SERVICES, code: 'SMART-on-FHIR', display: 'SMART-on-FHIR' }],
        text: 'OAuth2 using SMART-on-FHIR profile (see http://docs.smarthealthit.org)',
      },
    ],
  }
}

/** The compartments that can be searched (`Patient/[id]/Condition`). */
export const COMPARTMENTS: readonly string[] = ['http://hl7.org/fhir/CompartmentDefinition/patient']

/** The search parameters of a type that this software evaluates. */
export function describeParameters(
  type: string,
): readonly { readonly name: string; readonly type: string }[] {
  return listSearchParameters(type)
    .filter(it => it.type !== 'composite' && it.type !== 'special')
    .map(({ code, type: kind }) => ({ name: code, type: kind }))
}

/** The statement of US Core whose requirements the embedded server meets. */
export const US_CORE_SERVER = 'http://hl7.org/fhir/us/core/CapabilityStatement/us-core-server'

/** FHIR has no empty lists. */
export function describeProfiles(type: string): { readonly supportedProfile?: readonly string[] } {
  const profiles = listProfiles(type)
  return profiles.length > 0 ? { supportedProfile: profiles } : {}
}

const BULK_BASE = 'http://hl7.org/fhir/uv/bulkdata'

/** The statement that servers with bulk exports instantiate. */
export const BULK_DATA = `${BULK_BASE}/CapabilityStatement/bulk-data`

const EXPORTS: Readonly<Record<string, string>> = { Patient: 'patient-export', Group: 'group-export' }

/** The export of a type, if it has one, or of the system. */
export function describeExport(type?: string): readonly object[] {
  const operation = type === undefined ? 'export' : EXPORTS[type]
  if (operation === undefined) return []
  return [{ name: 'export', definition: `${BULK_BASE}/OperationDefinition/${operation}` }]
}

/** The audit trail serves AuditEvents: only the server writes them (AUDIT-6), and each has one version. */
export const AUDIT_SECTION = {
  type: 'AuditEvent',
  interaction: [{ code: 'read' }, { code: 'search-type' }],
  versioning: 'no-version',
  searchParam: describeParameters('AuditEvent'),
}
