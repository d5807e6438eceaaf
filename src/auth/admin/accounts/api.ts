import { type Static, type TObject, Type } from '@sinclair/typebox'
import { findOwn, isFailure } from '../../../core/index.ts'
import { CLOSED, formatTime, PageOf, Time } from '../../../endpoint/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { findSignIns } from '../../users/sign-ins.ts'
import { type Admin, type AdminFailure, failAdmin } from '../base/action.ts'
import { type AdminCall, defineEndpoint, type Endpoint, PAGE_QUERY, toPage } from '../base/endpoint.ts'
import type { ChangedUser } from './change-sign-in.ts'
import { addUser, changeUser } from './change-user.ts'
import { findUnknown, listFhirUsers } from './fhir-users.ts'
import { nameOperation } from './perform-on-user.ts'
import { describeSharing } from './shared-fhir-users.ts'
import { describeSignIn, SignIn } from './sign-ins.ts'
import { type ListFilter, USER_LISTS } from './user-lists.ts'
import { NewLink, Password, USER_OPERATIONS, type UserOperation, WithLink } from './user-operations.ts'
import { findUser, listUsers, type UserDescription, type UserKind } from './users.ts'

const USER = {
  id: Type.String(),
  username: Type.String(),
  display_name: Type.String(),
  fhir_user: Type.Optional(
    Type.String({
      description: 'For example `Practitioner/1`. Absent for an account that opens no records.',
    }),
  ),
  disabled: Type.Boolean(),
  has_password: Type.Boolean(),
  activation_ends_at: Type.Optional({
    ...Time,
    description: 'When the activation link of the user expires. Absent if there is none.',
  }),
  links: Type.Array(
    Type.Object(
      { issuer: Type.String(), subject: Type.String(), provisioned: Type.Boolean(), created_at: Time },
      CLOSED,
    ),
    { description: 'Users of identity providers who sign in as this user.' },
  ),
  second_factors: Type.Integer({ description: 'Authenticator apps and passkeys.' }),
  sign_ins: Type.Integer({ description: 'Browsers in which the user is signed in.' }),
  created_at: Type.Optional({ ...Time, description: 'Absent if the account is older than this record.' }),
  last_sign_in_at: Type.Optional({ ...Time, description: 'Absent if no sign-in is known.' }),
  locked_at: Type.Optional({
    ...Time,
    description:
      'Since then a password is accepted only from browsers and networks where the user has signed in before, because too many wrong ones were tried.',
  }),
  unknown_fhir_users: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Resources of this user that the FHIR server does not have. Only in responses about one user; absent if the FHIR server does not respond.',
    }),
  ),
  warnings: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Other accounts with the same FHIR user. Only in responses about one user; absent if there are none.',
    }),
  ),
}

/** The members that only one kind of users has. */
const KINDS = {
  clinician: {
    path: '/clinicians',
    name: 'clinician',
    example: 'For example `Practitioner/1`.',
    shown: {
      records: Type.Boolean({
        description: 'False for an account for administration only: it opens no patient records.',
      }),
      admin: Type.Boolean({ description: 'An administrator, however the user signs in.' }),
      auditor: Type.Boolean({
        description: 'Sees the administration area, and changes nothing. Never an administrator.',
      }),
      admin_providers: Type.Array(Type.String(), {
        description: 'The providers that name the user an administrator, in current sign-ins.',
      }),
    },
    set: {
      records: Type.Optional(
        Type.Boolean({
          description:
            '`false`: the account has no `fhir_user`, and opens no patient records. Ends all sign-ins and the access of apps. A `fhir_user` undoes it.',
        }),
      ),
      admin: Type.Optional(Type.Boolean({ description: '`true` ends `auditor`.' })),
      auditor: Type.Optional(Type.Boolean({ description: '`true` ends `admin`.' })),
    },
    filter: { admin: Type.Optional(Type.Boolean({ description: 'Also by a provider.' })) },
    show: ({ records, admin, auditor, adminProviders }: UserDescription) => ({
      records,
      admin,
      auditor,
      admin_providers: adminProviders,
    }),
  },
  account: {
    path: '/accounts',
    name: 'account of a patient or of related persons',
    example: '`Patient/1`, or `RelatedPerson/1` for a user who is not a patient.',
    shown: { related_persons: Type.Array(Type.String()) },
    set: {
      related_persons: Type.Optional(
        Type.Array(Type.String(), { maxItems: LIMITS.relatedPersons, description: 'Ids.' }),
      ),
    },
    filter: {},
    show: ({ relatedPersons }: UserDescription) => ({ related_persons: relatedPersons }),
  },
} as const

export const userEndpoints = [...defineUserEndpoints('clinician'), ...defineUserEndpoints('account')]

interface UserMembers {
  readonly display_name?: string
  readonly fhir_user?: string
  readonly disabled?: boolean
  readonly records?: boolean
  readonly admin?: boolean
  readonly auditor?: boolean
  readonly related_persons?: readonly string[]
}

function defineUserEndpoints(kind: UserKind): readonly Endpoint[] {
  const { path, name, example, shown, set, filter, show } = KINDS[kind]
  const User: TObject = Type.Object({ ...USER, ...shown }, CLOSED)
  const describe = (user: UserDescription | AdminFailure) =>
    isFailure(user) ? user : { ...describeUser(user), ...show(user) }
  /** With a question to the FHIR server. */
  const describeOne = async (
    { context, admin }: Pick<AdminCall, 'context' | 'admin'>,
    user: UserDescription | AdminFailure,
  ) => {
    if (isFailure(user)) return user
    const unknown = await findUnknown(context, admin, listFhirUsers(user))
    const warnings = await describeSharing(context, user)
    return {
      ...describeUser(user),
      ...show(user),
      ...(unknown && { unknown_fhir_users: unknown }),
      ...(warnings.length > 0 && { warnings }),
    }
  }
  const find = async (admin: Admin, id = '') =>
    (await findUser(admin, { id, kind })) ?? failAdmin('user-unknown', { kind, name: id })
  const own = `${path}/:id` as const
  return [
    defineEndpoint({
      method: 'GET',
      path,
      title: `Every ${name}, by username`,
      query: Type.Object(
        {
          state: Type.Optional(
            Type.Union(
              Object.keys(USER_LISTS).map(list => Type.Literal(list)),
              {
                description: 'A list of the page `/admin/clinicians`. Other members override its conditions.',
              },
            ),
          ),
          text: Type.Optional(
            Type.String({ maxLength: 200, description: 'Part of the username or the name.' }),
          ),
          disabled: Type.Optional(Type.Boolean()),
          second_factor: Type.Optional(
            Type.Boolean({ description: 'Whether the user has a second factor on this server.' }),
          ),
          locked: Type.Optional(
            Type.Boolean({ description: 'Whether the account is locked after too many wrong passwords.' }),
          ),
          unused_days: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: 36_500,
              description: 'Only users who have not signed in for this number of days.',
            }),
          ),
          signed_in: Type.Optional(Type.Boolean({ description: 'Whether a sign-in is known.' })),
          ...filter,
          ...PAGE_QUERY,
        },
        CLOSED,
      ),
      result: PageOf(User),
      async handle({ admin, query: { state = 'all', second_factor, unused_days, signed_in, ...query } }) {
        const list = findOwn<ListFilter>(USER_LISTS, state)
        const wanted = {
          ...list,
          ...query,
          hasSecondFactor: second_factor ?? list?.hasSecondFactor,
          unusedDays: unused_days ?? list?.unusedDays,
          hasSignedIn: signed_in ?? list?.hasSignedIn,
          kind,
        }
        return toPage(await listUsers(admin, wanted), describe)
      },
    }),
    defineEndpoint({
      method: 'POST',
      path,
      title: `Add a${kind === 'account' ? 'n' : ''} ${name}`,
      description:
        'If the body has neither a password nor a link, the user signs in with an identity provider.',
      body: Type.Object(
        {
          username: Type.String(),
          display_name: Type.String(),
          fhir_user: Type.Optional(Type.String({ description: example })),
          password: Password,
          activation_link: WithLink,
          ...set,
        },
        CLOSED,
      ),
      status: 201,
      operation: nameOperation(kind, 'add'),
      result: Type.Composite([User, Type.Object({ activation_link: Type.Optional(NewLink) })], CLOSED),
      async handle({
        admin,
        context,
        body: { username, display_name, fhir_user = '', password, activation_link, ...members },
      }) {
        const named = { kind, username, displayName: display_name, fhirUser: fhir_user }
        const user = { ...readChanges(members), ...named, password, withLink: activation_link }
        const added = await addUser(admin, user)
        const described = await describeOne({ context, admin }, added)
        return isFailure(added) || isFailure(described) ? described : { ...described, ...describeLink(added) }
      },
    }),
    defineEndpoint({
      method: 'GET',
      path: own,
      title: `One ${name}`,
      result: User,
      handle: async ({ admin, context, params: { id } }) =>
        describeOne({ context, admin }, await find(admin, id)),
    }),
    defineEndpoint({
      method: 'GET',
      path: `${own}/sign-ins`,
      title: 'Browsers in which the user is signed in, most recently used first',
      result: Type.Object({ items: Type.Array(SignIn) }, CLOSED),
      async handle({ admin, params: { id } }) {
        const user = await find(admin, id)
        if (isFailure(user)) return user
        return { items: (await findSignIns(admin, user.id)).map(describeSignIn) }
      },
    }),
    defineEndpoint({
      method: 'PATCH',
      path: own,
      title: `Change a${kind === 'account' ? 'n' : ''} ${name}`,
      description:
        'Absent members keep their values. Disabling a user ends all sign-ins and the access of apps.',
      body: Type.Object(
        {
          display_name: Type.Optional(Type.String()),
          fhir_user: Type.Optional(Type.String()),
          disabled: Type.Optional(Type.Boolean()),
          ...set,
        },
        CLOSED,
      ),
      operation: nameOperation(kind, 'set'),
      result: User,
      handle: async ({ admin, context, params: { id = '' }, body }) =>
        describeOne({ context, admin }, await changeUser(admin, { id, kind }, readChanges(body))),
    }),
    ...Object.entries<UserOperation>(USER_OPERATIONS).flatMap(([verb, { signIn, api, perform }]) =>
      api && perform
        ? [
            defineEndpoint<TObject, TObject>({
              method: api.method,
              path: api.path === '' ? own : `${own}/${api.path}`,
              title: api.title,
              ...(api.description !== undefined && { description: api.description }),
              [api.method === 'DELETE' ? 'query' : 'body']: api.input,
              operation: { name: `${kind} ${verb}`, signIn },
              result: api.result ?? User,
              async handle({ admin, params: { id = '' }, query, body }) {
                const changed = await perform(admin, { id, kind }, { ...query, ...body })
                if (isFailure(changed)) return changed
                const { password, activationLink } = changed
                if (activationLink) return describeLink(changed)
                return password === undefined ? describe(changed) : { password }
              },
            }),
          ]
        : [],
    ),
  ]
}

function readChanges(members: UserMembers) {
  const { display_name, fhir_user, records, disabled, admin, auditor, related_persons } = members
  return {
    displayName: display_name,
    fhirUser: fhir_user,
    records,
    disabled,
    admin,
    auditor,
    relatedPersons: related_persons,
  }
}

function describeLink({ activationLink }: ChangedUser) {
  if (!activationLink) return {}
  const { url, expiresAt } = activationLink
  return { activation_link: { url, expires_at: formatTime(expiresAt) } }
}

/** A user of any kind, with the members of that kind. */
export function describeAnyUser(user: UserDescription) {
  return { ...describeUser(user), ...KINDS[user.kind].show(user) }
}

function describeUser(user: UserDescription): Static<TObject<typeof USER>> {
  return {
    id: user.id,
    username: user.username,
    display_name: user.displayName,
    ...(user.records && { fhir_user: user.fhirUser }),
    disabled: user.disabled,
    has_password: user.hasPassword,
    ...(user.activationEndsAt !== undefined && { activation_ends_at: formatTime(user.activationEndsAt) }),
    links: user.links.map(({ createdAt, ...link }) => ({ ...link, created_at: formatTime(createdAt) })),
    second_factors: user.secondFactors,
    sign_ins: user.signIns,
    ...(user.createdAt !== undefined && { created_at: formatTime(user.createdAt) }),
    ...(user.signedInAt !== undefined && { last_sign_in_at: formatTime(user.signedInAt) }),
    ...(user.lockedAt !== undefined && { locked_at: formatTime(user.lockedAt) }),
  }
}
