import { type Static, Type } from '@sinclair/typebox'
import type { RecordFilter } from '../../../audit/index.ts'
import { isFailure } from '../../../fhir/index.ts'
import { html } from '../../../web/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { AdminFailure, recordAction } from '../action.ts'
import {
  describeRecord,
  EXPORT_FORMATS,
  EXPORT_RECORDS,
  exportRecords,
  LIST_RECORDS,
  listRecords,
} from '../audit.ts'
import { type GrantDescription, listGrants, REVOKE_GRANT, revokeGrantById } from '../grants.ts'
import { type KeyDescription, listKeys, ROTATE_KEYS, rotateKeys, WITHDRAW_KEY, withdrawKey } from '../keys.ts'
import {
  defineEndpoint,
  formatTime,
  NONE,
  PAGE_QUERY,
  PageOf,
  StreamedText,
  Time,
  toPage,
} from './endpoint.ts'

const Key = Type.Object(
  {
    kid: Type.String(),
    state: Type.Union([Type.Literal('signs'), Type.Literal('next'), Type.Literal('retired')]),
    created_at: Time,
    signs_from: Time,
    retired_at: Type.Optional(Time),
  },
  { additionalProperties: false },
)

function describeKey({ kid, state, createdAt, signsFrom, retiredAt }: KeyDescription): Static<typeof Key> {
  return {
    kid,
    state,
    created_at: formatTime(createdAt),
    signs_from: formatTime(signsFrom),
    ...(retiredAt !== undefined && { retired_at: formatTime(retiredAt) }),
  }
}

export const keyEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/keys',
    title: 'Signing keys, newest first',
    result: Type.Object({ items: Type.Array(Key) }, { additionalProperties: false }),
    handle: async ({ admin }) => ({ items: (await listKeys(admin)).map(describeKey) }),
  }),
  defineEndpoint({
    method: 'POST',
    path: '/keys',
    title: 'Publish a new key, which signs a few seconds later',
    body: NONE,
    result: Type.Object({ signs_from: Time }, { additionalProperties: false }),
    operation: ROTATE_KEYS,
    page: {
      path: '/keys/rotate',
      section: 'keys',
      title: 'Rotate the signing keys?',
      text: () =>
        'A new key is published, and signs as soon as all servers have it. Tokens of the current key stay valid.',
      button: 'Rotate keys',
      isDangerous: false,
      back: '/keys',
      done: '/keys?done=rotated',
    },
    async handle({ admin, context }) {
      const rotated = await rotateKeys(admin, context.sealer)
      return isFailure(rotated) ? rotated : { signs_from: formatTime(rotated.signsFrom) }
    },
  }),
  defineEndpoint({
    method: 'DELETE',
    path: '/keys/:kid',
    title: 'Withdraw a leaked key at once',
    description: 'Every server refuses its tokens within 5 seconds. A new key signs.',
    result: Type.Object({ kid: Type.String() }, { additionalProperties: false }),
    operation: WITHDRAW_KEY,
    page: {
      path: '/keys/:kid/withdraw',
      section: 'keys',
      title: 'Withdraw this key?',
      text: ({ kid }) =>
        html`The key <code>${kid}</code> is removed at once, and all tokens that it signed become invalid: users have to launch their apps again. Do this if the key has leaked.`,
      button: 'Withdraw key',
      back: '/keys',
      done: '/keys?done=withdrawn',
      async refuse({ admin, params }) {
        const isKnown = (await listKeys(admin)).some(({ kid }) => kid === params.kid)
        return isKnown ? undefined : new AdminFailure('not_found', 'there is no such key')
      },
    },
    handle: async ({ admin, context, params: { kid = '' } }) => withdrawKey(admin, context.sealer, kid),
  }),
]

const Grant = Type.Object(
  {
    id: Type.String({ description: 'Also the id of its launch in the audit trail.' }),
    client_id: Type.String(),
    clinician_id: Type.String(),
    username: Type.String(),
    scope: Type.String(),
    patient: Type.Optional(Type.String()),
    created_at: Time,
    last_used_at: Time,
    expires_at: Type.Optional(Time),
  },
  { additionalProperties: false },
)

function describeGrant(grant: GrantDescription): Static<typeof Grant> {
  return {
    id: grant.id,
    client_id: grant.clientId,
    clinician_id: grant.userId,
    username: grant.username,
    scope: grant.scope,
    ...(grant.patientId !== undefined && { patient: grant.patientId }),
    created_at: formatTime(grant.createdAt),
    last_used_at: formatTime(grant.lastUsedAt),
    ...(grant.endsAt !== undefined && { expires_at: formatTime(grant.endsAt) }),
  }
}

export const grantEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/grants',
    title: 'Grants that have not ended, newest first',
    description: 'Needs `client_id` or `clinician_id`. A page may have fewer items than `limit`.',
    query: Type.Object(
      {
        client_id: Type.Optional(Type.String()),
        clinician_id: Type.Optional(Type.String({ description: 'The id of a clinician or an account.' })),
        ...PAGE_QUERY,
      },
      { additionalProperties: false },
    ),
    result: PageOf(Grant),
    async handle({ admin, query: { client_id, clinician_id, ...page } }) {
      const found = await listGrants(admin, { clientId: client_id, userId: clinician_id, ...page })
      return isFailure(found) ? found : toPage(found, describeGrant)
    },
  }),
  defineEndpoint({
    method: 'DELETE',
    path: '/grants/:id',
    title: 'Revoke a grant with all its tokens',
    description: 'FHIR servers refuse them within 5 seconds.',
    result: Type.Object({ id: Type.String() }, { additionalProperties: false }),
    operation: REVOKE_GRANT,
    page: {
      path: '/grants/:id/revoke',
      section: 'apps',
      title: 'Revoke this access?',
      text: ({ id }) =>
        html`The app’s tokens of the grant <code>${id}</code> are refused within 5 seconds. The user can launch the app again.`,
      button: 'Revoke access',
      back: '/apps',
      done: '/apps?done=revoked',
    },
    handle: async ({ admin, params: { id = '' } }) => revokeGrantById(admin, id),
  }),
]

const Instant = Type.Optional(
  Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}(T|$)', description: 'A date, or a date and time.' }),
)

const FILTER = {
  since: Instant,
  before: Instant,
  kind: Type.Optional(Type.String({ description: 'For example `fhir`, `login`, `admin`.' })),
  outcome: Type.Optional(Type.Union([Type.Literal('allowed'), Type.Literal('refused')])),
  patient: Type.Optional(Type.String({ description: 'The id of a patient.' })),
  user: Type.Optional(Type.String({ description: 'For example `Practitioner/1`.' })),
  client_id: Type.Optional(Type.String()),
  launch: Type.Optional(Type.String()),
}

const AuditFilter = Type.Object(FILTER, { additionalProperties: false })

function readFilter(query: Static<typeof AuditFilter>): RecordFilter | AdminFailure {
  const { since, before, kind, outcome, patient, user, client_id, launch } = query
  const [from, until] = [since, before].map(text => (text === undefined ? undefined : Date.parse(text)))
  if (Number.isNaN(from) || Number.isNaN(until)) return new AdminFailure('invalid', 'a time is not valid')
  return {
    since: from,
    before: until,
    events: kind === undefined ? undefined : [{ kind }],
    allowed: outcome === undefined ? undefined : outcome === 'allowed',
    patients: patient === undefined ? undefined : [patient.replace(/^Patient\//, '')],
    users: user === undefined ? undefined : [user],
    client: client_id,
    launch,
  }
}

const AuditRecord = Type.Object(
  {
    id: Type.Integer(),
    at: Time,
    server: Type.String(),
    kind: Type.String(),
    allowed: Type.Boolean(),
    status: Type.Integer(),
  },
  { description: 'With the further columns that have a value.' },
)

export const auditEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/audit',
    title: 'Audit records, newest first',
    description: 'A page may have fewer items than `limit`. The request is recorded too.',
    query: Type.Object({ ...FILTER, ...PAGE_QUERY }, { additionalProperties: false }),
    result: PageOf(AuditRecord),
    operation: LIST_RECORDS,
    async handle({ admin, query: { after, limit, ...query } }) {
      const filter = readFilter(query)
      if (isFailure(filter)) return filter
      await recordAction(admin, { operation: LIST_RECORDS, after: query })
      const page = await listRecords(admin, { ...filter, after, limit })
      return toPage(page, describeRecord)
    },
  }),
  defineEndpoint({
    method: 'GET',
    path: '/audit/export',
    title: 'Audit records as a file, newest first',
    description: `At most ${LIMITS.exportedRecords} records: choose times for more. NDJSON has FHIR AuditEvents.`,
    query: Type.Object(
      { ...FILTER, format: Type.Union([Type.Literal('ndjson'), Type.Literal('csv')], { default: 'ndjson' }) },
      { additionalProperties: false },
    ),
    streams: Object.values(EXPORT_FORMATS).map(({ type }) => type),
    operation: EXPORT_RECORDS,
    async handle({ admin, context, query: { format, ...query } }) {
      const filter = readFilter(query)
      if (isFailure(filter)) return filter
      const { fhirBaseUrl } = context.settings
      const parts = await exportRecords(admin, format, { ...filter, fhirBaseUrl })
      return isFailure(parts) ? parts : new StreamedText(EXPORT_FORMATS[format].type, parts)
    },
  }),
]
