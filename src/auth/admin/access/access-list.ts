import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { CLOSED, Time } from '../../../endpoint/index.ts'
import { formatName } from '../../../web/person/index.ts'
import { type Html, html, renderBadge, renderDateTime, renderHidden } from '../../../web/ui/index.ts'
import type { Admin, AdminFailure, AdminOperation } from '../base/action.ts'
import { findWantedAccounts, findWantedApps } from '../base/find-named.ts'
import type { SubjectColumns } from '../subject/columns.ts'
import { defineList, type Wanted } from '../subject/list.ts'
import { findPatientNames, type PatientNames, renderPatient } from '../subject/page/find-patients.ts'
import { renderLink } from '../subject/page/shell.ts'
import type { Subject } from '../subject/subject.ts'
import {
  findGrant,
  type GrantDescription,
  type GrantFilter,
  listGrants,
  listServices,
  revokeGrantById,
  type ServiceDescription,
} from './grants.ts'

/** Access of an app on behalf of a user, or by itself. */
export interface GivenAccess
  extends ServiceDescription,
    Partial<Omit<GrantDescription, keyof ServiceDescription>> {
  /** The names of patients that the page shows. */
  readonly names?: PatientNames
}

export const ACCESS_COLUMNS: SubjectColumns<GivenAccess> = {
  id: {
    schema: Type.String(),
    about: 'Also the id of its launch in the audit trail.',
    of: 'id',
    table: 'ID',
  },
  client_id: {
    schema: Type.String(),
    of: 'clientId',
    page: [
      'App',
      ({ clientId, clientName, isAgent }) =>
        html`${renderLink(`/apps/${encodeURIComponent(clientId)}`, clientName)}${isAgent === true && html`&ensp;${renderBadge('Assistant')}`}`,
    ],
    table: 'APP',
  },
  app: { csv: access => access.clientName },
  clinician_id: { of: 'userId', schema: Type.String(), csv: false },
  username: {
    schema: Type.String(),
    of: 'username',
    page: [
      'User',
      ({ userId = '', displayName, username }) =>
        html`${renderLink(`/clinicians/${encodeURIComponent(userId)}`, displayName ?? '')}<span class="sub"><code>${username}</code></span>`,
    ],
    table: ['USER', access => access.username ?? '(no user)'],
  },
  user: { csv: access => access.displayName },
  patient: {
    schema: Type.Optional(Type.String()),
    of: 'patientId',
    page: ['Patient', renderAccessPatient],
    table: ['PATIENT', formatPatient],
  },
  every_patient: { csv: access => access.opensEvery },
  scope: { schema: Type.String(), of: 'scope', page: ['Scopes', access => renderScopes(access.scope)] },
  created_at: { schema: Time, of: 'createdAt', csv: 'granted_at', page: 'Granted', table: 'GRANTED' },
  last_used_at: { schema: Time, of: 'lastUsedAt', page: 'Last used', table: 'LAST USED' },
  expires_at: {
    schema: Type.Optional(Time),
    of: 'endsAt',
    csv: 'ends_at',
    page: ['Ends', ({ endsAt }) => (endsAt === undefined ? 'When it is revoked' : renderDateTime(endsAt))],
  },
  scopes: { table: ['SCOPES', access => access.scope] },
}

function formatPatient({ username, patientId, opensEvery }: GivenAccess): string {
  if (username === undefined) return opensEvery ? 'every' : 'none'
  return (
    [patientId, opensEvery ? 'any of the user' : undefined].filter(text => text !== undefined).join(', ') ||
    '-'
  )
}

function renderAccessPatient({ patientId, opensEvery, names = new Map() }: GivenAccess): Html | string {
  if (patientId === undefined) return opensEvery ? 'Any' : 'None'
  return html`${renderPatient(patientId, names)}${opensEvery && html`<span class="sub">and any other</span>`}`
}

export function renderScopes(scope: string): Html {
  const { length } = scope.split(' ')
  return html`<details class="more"><summary>${length === 1 ? '1 scope' : `${length} scopes`}</summary><p class="url url--block">${scope}</p></details>`
}

const SERVICE_COLUMNS: SubjectColumns<GivenAccess> = {
  client_id: { schema: Type.String(), of: 'clientId' },
  client_name: { schema: Type.String(), of: 'clientName' },
  scope: {
    schema: Type.String(),
    about: 'The scopes that it may request without a user.',
    of: 'scope',
  },
}

const FILTERS = {
  client_id: {
    schema: Type.String(),
    about: 'The id of an app.',
    help: 'Only access of this app: its id or its name.',
    name: 'app',
    option: 'client',
  },
  clinician_id: {
    schema: Type.String(),
    about: 'The id of a clinician or an account.',
    help: 'Only grants of this user: a username, a name, the id of an account or a FHIR user (Practitioner/1).',
    name: 'user',
  },
  patient: {
    schema: Type.String(),
    about:
      'The id of a patient. `any`: grants with access to every patient that the user can see (`user/` scopes).',
  },
}

type AccessFilter = Omit<GrantFilter, 'after' | 'limit'>

/** The value of a filter by patient that means `opensEvery`. */
export const ANY_PATIENT = 'any'

async function readFilter(
  admin: Admin,
  { client_id, clinician_id, patient }: Wanted<typeof FILTERS>,
): Promise<AccessFilter | AdminFailure> {
  const userIds = await findWantedAccounts(admin, clinician_id)
  if (isFailure(userIds)) return userIds
  const clientIds = await findWantedApps(admin, client_id)
  if (isFailure(clientIds)) return clientIds
  if (patient === ANY_PATIENT) return { userIds, clientIds, opensEvery: true }
  const patientIds = patient === undefined ? undefined : [patient.replace(/^Patient\//, '')]
  return { userIds, clientIds, patientIds }
}

/** Who has access now: the grants of users. */
export const GRANTS = defineList<GivenAccess, typeof FILTERS>({
  columns: ACCESS_COLUMNS,
  filters: FILTERS,
  async read(admin, { after, limit, ...wanted }) {
    const filter = await readFilter(admin, wanted)
    return isFailure(filter) ? filter : listGrants(admin, { ...filter, after, limit })
  },
  others: {
    name: 'services',
    columns: SERVICE_COLUMNS,
    async read(admin, wanted) {
      const filter = await readFilter(admin, wanted)
      if (isFailure(filter)) return filter
      const { userIds, clientIds } = filter
      return userIds ? [] : listServices(admin, { clientIds, usesFhir: wanted.patient !== undefined })
    },
  },
  api: {
    path: '/grants',
    title: 'Who has access now: grants that can still be used, newest first',
    description: 'All of them, or of an app, a user or a patient. A page may have fewer items than `limit`.',
  },
  command: {
    name: 'grant list',
    nouns: 'grants',
    about:
      'Prints who has access now, as /admin/access does: the grants of apps on behalf of users that can still be used, newest first, and the apps that need no user (backend services, programs of this server).',
    more: 'To end one: grant revoke <id>, or client disable <id>',
    none: 'No app has access.',
  },
})

/** Programs that have access without a user. */
export const SERVICES = defineList<GivenAccess, Pick<typeof FILTERS, 'client_id'>>({
  columns: SERVICE_COLUMNS,
  filters: { client_id: FILTERS.client_id },
  async read(admin, { client_id }) {
    const filter = await readFilter(admin, { client_id })
    if (isFailure(filter)) return filter
    return { items: await listServices(admin, { clientIds: filter.clientIds }), next: undefined }
  },
  api: {
    path: '/services',
    title: 'Programs that have access now without a user (`client_credentials`), by id',
    isWhole: true,
  },
})

const Id = Type.Object({ id: Type.String() }, CLOSED)

/** A grant, and its patient in words if the administrator may read them. */
interface ShownGrant extends GrantDescription {
  readonly patientName?: string | undefined
}

/** The access that an app has on behalf of a user. */
export const GRANT: Subject<ShownGrant, string, { readonly id: string }, GivenAccess> = {
  name: 'grant',
  lists: [SERVICES, GRANTS],
  operations: {
    revoke: {
      signIn: 'never asks',
      api: {
        method: 'DELETE',
        path: '',
        title: 'Revoke a grant with all its tokens',
        description: 'FHIR servers refuse them within 5 seconds.',
      },
      page: {
        title: () => 'Revoke this access?',
        text: 'The app’s tokens are refused within 5 seconds. The user can launch the app again.',
        button: 'Revoke access',
      },
      command: {
        done: 'Revoked',
        help: `
The app loses this access. FHIR servers refuse its tokens within 5 seconds. The user can launch the app again.`,
      },
      perform: revokeGrantById,
    },
  },
  toTarget: id => id,
  find: ({ admin }, id) => findGrant(admin, id),
  api: { path: '/grants/:id', result: Id, describe: changed => changed },
  pages: {
    section: 'access',
    path: '/grants/:id',
    async prepare(request, grant) {
      const { patientId } = grant
      const ids = patientId === undefined ? [] : [patientId]
      const person = (await findPatientNames(request, 'administration-names', ids)).get(patientId ?? '')
      return { ...grant, patientName: person && formatName(person.name) }
    },
    getBack: ({ form }, { clientId }) =>
      formatList(form.get('list')) ?? `/apps/${encodeURIComponent(clientId)}`,
    listFacts: async (_, grant) => [
      ['App', html`${grant.clientName} <code>${grant.clientId}</code>`],
      ['User', html`${grant.displayName} <code>${grant.username}</code>`],
      ['Patient', describeAccessPatient(grant)],
      ['Last used', renderDateTime(grant.lastUsedAt)],
    ],
    show: ({ form }, _, { row }) =>
      formatList(form.get('list'), 'revoked') ??
      `/apps/${encodeURIComponent(row?.clientId ?? '')}?done=revoked`,
    forms: {
      revoke: {
        render: ({ form }) => html`${renderHidden({ list: form.get('list') })}`,
        read: () => ({}),
      },
    },
  },
  command: { noun: 'grant', option: 'id' },
}

function describeAccessPatient({ patientId, patientName, opensEvery }: ShownGrant): Html {
  if (patientId === undefined) return html`${opensEvery ? 'Any whom the user may see' : 'None'}`
  return html`${patientName} <code>${patientId}</code>${opensEvery && ', and any other whom the user may see'}`
}

/** The list of access, with the filters with which the administrator left it. */
function formatList(filters: string | undefined, done?: string): string | undefined {
  if (filters === undefined) return undefined
  const query = new URLSearchParams(filters)
  query.delete('done')
  if (done !== undefined) query.set('done', done)
  return `/access?${query}`
}

export const EXPORT_ACCESS: AdminOperation = {
  name: 'grant export',
  signIn: 'never asks',
  isForAuditors: true,
}
