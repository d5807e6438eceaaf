import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { CLOSED, formatTime } from '../../../endpoint/index.ts'
import { findSignIns } from '../../users/sign-ins.ts'
import { type Admin, type AdminFailure, failAdmin } from '../base/action.ts'
import { type AdminCall, type AdminEndpoint, defineEndpoint } from '../base/endpoint.ts'
import { describeColumns, toJson } from '../subject/columns.ts'
import { defineListEndpoint } from '../subject/endpoint.ts'
import { defineOperationEndpoints, type Subject } from '../subject/operations.ts'
import { NewLink, Password, WithLink } from './change-sign-in.ts'
import { addUser, changeUser } from './change-user.ts'
import { findUnknown, listFhirUsers } from './fhir-users.ts'
import type { ChangedUser, ShownUser } from './perform-on-user.ts'
import { describeSharing } from './shared-fhir-users.ts'
import { SIGN_IN_COLUMNS } from './sign-ins.ts'
import { describeMembers, readMembers, type UserKind } from './user-fields.ts'
import { listColumns, USER_LISTS } from './user-list.ts'
import { getUserOperation, USER_OPERATIONS } from './user-operations.ts'
import { findUser, type UserDescription, type UserTarget } from './users.ts'

/** Only in responses about one user. */
const ABOUT_ONE = {
  unknown_fhir_users: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Resources of this user that the FHIR server does not have. Absent if the FHIR server does not respond.',
    }),
  ),
  warnings: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Other accounts with the same FHIR user. Absent if there are none.',
    }),
  ),
}

const KINDS = {
  clinician: { path: '/clinicians', name: 'clinician' },
  account: { path: '/accounts', name: 'account of a patient or of related persons' },
} as const

export const userEndpoints = [...defineUserEndpoints('clinician'), ...defineUserEndpoints('account')]

function defineUserEndpoints(kind: UserKind): readonly AdminEndpoint[] {
  const { path, name } = KINDS[kind]
  const columns = listColumns(kind)
  const User = Type.Object({ ...describeColumns(columns).properties, ...ABOUT_ONE }, CLOSED)
  /** With a question to the FHIR server. */
  const describeOne = async (
    { context, admin }: Pick<AdminCall, 'context' | 'admin'>,
    user: UserDescription | AdminFailure,
  ) => {
    if (isFailure(user)) return user
    const unknown = await findUnknown(context, admin, listFhirUsers(user))
    const warnings = await describeSharing(context, user)
    return {
      ...toJson(columns, user),
      ...(unknown && { unknown_fhir_users: unknown }),
      ...(warnings.length > 0 && { warnings }),
    }
  }
  const find = async (admin: Admin, id = '') =>
    (await findUser(admin, { id, kind })) ?? failAdmin('user-unknown', { kind, name: id })
  const own = `${path}/:id` as const
  return [
    ...defineListEndpoint(USER_LISTS[kind]),
    defineEndpoint({
      method: 'POST',
      path,
      title: `Add a${kind === 'account' ? 'n' : ''} ${name}`,
      description:
        'If the body has neither a password nor a link, the user signs in with an identity provider.',
      body: Type.Object(
        { ...describeMembers(kind, 'add'), password: Password, activation_link: WithLink },
        CLOSED,
      ),
      status: 201,
      operation: getUserOperation(kind, 'add'),
      result: Type.Object({ ...User.properties, activation_link: Type.Optional(NewLink) }, CLOSED),
      async handle({ admin, context, body }) {
        const { username = '', displayName = '', fhirUser = '', ...others } = readMembers(body)
        const { password, activation_link: withLink } = body
        const user = { ...others, kind, username, displayName, fhirUser, password, withLink }
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
      result: Type.Object({ items: Type.Array(describeColumns(SIGN_IN_COLUMNS)) }, CLOSED),
      async handle({ admin, params: { id } }) {
        const user = await find(admin, id)
        if (isFailure(user)) return user
        return { items: (await findSignIns(admin, user.id)).map(signIn => toJson(SIGN_IN_COLUMNS, signIn)) }
      },
    }),
    defineEndpoint({
      method: 'PATCH',
      path: own,
      title: `Change a${kind === 'account' ? 'n' : ''} ${name}`,
      description:
        'Absent members keep their values. Disabling a user ends all sign-ins and the access of apps.',
      body: Type.Object(describeMembers(kind, 'set'), CLOSED),
      operation: getUserOperation(kind, 'set'),
      result: User,
      handle: async ({ admin, context, params: { id = '' }, body }) =>
        describeOne({ context, admin }, await changeUser(admin, { id, kind }, readMembers(body))),
    }),
    ...defineOperationEndpoints({
      name: kind,
      operations: USER_OPERATIONS,
      toTarget: id => ({ id, kind }),
      api: {
        path: own,
        result: User,
        describe(changed) {
          const { password, activationLink } = changed
          if (activationLink) return describeLink(changed)
          return password === undefined ? toJson(columns, changed) : { password }
        },
      },
    } satisfies Subject<ShownUser, UserTarget, ChangedUser>),
  ]
}

function describeLink({ activationLink }: ChangedUser) {
  if (!activationLink) return {}
  const { url, expiresAt } = activationLink
  return { activation_link: { url, expires_at: formatTime(expiresAt) } }
}
