import { Type } from '@sinclair/typebox'
import { FEATURE_NAMES, LOG_LEVELS } from '../../../config/index.ts'
import { isFailure } from '../../../fhir/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { ProviderReport } from '../../users/providers/provider-client.ts'
import { checkPolicy, EXPLAIN_POLICY, explainPatientAccess, VALIDATE_POLICY } from '../policy.ts'
import { listProviders, TEST_PROVIDER, testProvider } from '../providers.ts'
import {
  describeSystem,
  findServers,
  RELOAD_SETTINGS,
  reloadSettings,
  SET_LOG_LEVEL,
  setLogLevel,
} from '../system.ts'
import { defineEndpoint, formatTime, NONE, Time } from './endpoint.ts'

const closed = { additionalProperties: false } as const

export const policyEndpoints = [
  defineEndpoint({
    method: 'POST',
    path: '/policy/validate',
    title: 'Validate a policy file',
    description: 'Changes nothing.',
    body: Type.Object(
      { policy: Type.String({ description: 'YAML or JSON.', maxLength: LIMITS.policyCharacters }) },
      closed,
    ),
    result: Type.Object(
      {
        valid: Type.Boolean(),
        rules: Type.Optional(Type.Integer()),
        problems: Type.Optional(Type.Array(Type.String())),
      },
      closed,
    ),
    operation: VALIDATE_POLICY,
    handle: async ({ body: { policy } }) => checkPolicy(policy),
  }),
  defineEndpoint({
    method: 'GET',
    path: '/policy/patients/:id',
    title: 'The clinicians who may see a patient, and why',
    description:
      'By the policy in effect on this server, for `user/` scopes. Reads the patient from the FHIR server.',
    result: Type.Object(
      {
        items: Type.Array(
          Type.Object(
            {
              rule: Type.Optional(
                Type.Integer({
                  description: 'The number of the rule, from 1. Absent without a policy file.',
                }),
              ),
              reason: Type.String(),
              clinicians: Type.Union([Type.Literal('all'), Type.Array(Type.String())]),
            },
            closed,
          ),
        ),
      },
      closed,
    ),
    operation: EXPLAIN_POLICY,
    async handle({ admin, context, params: { id = '' } }) {
      const found = await explainPatientAccess(admin, context, id)
      if (isFailure(found)) return found
      return {
        items: found.map(({ rule, reason, clinicians }) => ({
          ...(rule !== undefined && { rule }),
          reason,
          clinicians: clinicians === 'all' ? ('all' as const) : [...clinicians],
        })),
      }
    },
  }),
  defineEndpoint({
    method: 'POST',
    path: '/policy/reload',
    title: 'Reload the policy file',
    description:
      'Also the sign-in providers and the certificates. If anything is invalid, nothing changes (409). Other instances read their own files within seconds.',
    body: NONE,
    result: Type.Object(
      { need_restart: Type.Array(Type.String(), { description: 'Changed settings that need a restart.' }) },
      closed,
    ),
    operation: RELOAD_SETTINGS,
    async handle({ admin, context }) {
      const reloaded = await reloadSettings(admin, context)
      return isFailure(reloaded) ? reloaded : { need_restart: [...reloaded.needRestart] }
    },
  }),
]

const Provider = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    kind: Type.Union([Type.Literal('oidc'), Type.Literal('ldap')]),
    issuer: Type.String(),
  },
  closed,
)

export const providerEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/providers',
    title: 'Sign-in providers',
    result: Type.Object({ items: Type.Array(Provider) }, closed),
    handle: async ({ context }) => ({ items: [...listProviders(context)] }),
  }),
  defineEndpoint({
    method: 'POST',
    path: '/providers/:id/test',
    title: 'Test a sign-in provider',
    description: 'Fetches metadata and keys, or searches the directory. Signs nobody in.',
    body: NONE,
    result: Type.Object(
      {
        id: Type.String(),
        ok: Type.Boolean(),
        reason: Type.Optional(Type.String()),
        authorization_endpoint: Type.Optional(Type.String()),
        token_endpoint: Type.Optional(Type.String()),
        jwks_uri: Type.Optional(Type.String()),
        kids: Type.Optional(Type.Array(Type.String())),
        clock_ahead_seconds: Type.Optional(Type.Integer()),
      },
      closed,
    ),
    operation: TEST_PROVIDER,
    async handle({ admin, context, params: { id = '' } }) {
      const tested = await testProvider(admin, context, id)
      if (isFailure(tested)) return tested
      const { ok, reason, report } = tested
      return { id, ok, ...(reason !== undefined && { reason }), ...(report && describeReport(report)) }
    },
  }),
]

function describeReport(report: ProviderReport) {
  return {
    authorization_endpoint: report.authorizationEndpoint,
    token_endpoint: report.tokenEndpoint,
    jwks_uri: report.keySetUrl,
    kids: [...report.keyIds],
    ...(report.clockAheadSeconds !== undefined && { clock_ahead_seconds: report.clockAheadSeconds }),
  }
}

const Level = Type.Object({ level: Type.Union(LOG_LEVELS.map(level => Type.Literal(level))) }, closed)

const System = Type.Object(
  {
    version: Type.String(),
    node: Type.String(),
    started_at: Time,
    database: Type.Union([Type.Literal('sqlite'), Type.Literal('postgres')]),
    upstream_url: Type.Optional(Type.String()),
    policy_rules: Type.Optional(Type.Integer()),
    audit: Type.Boolean(),
    ...Object.fromEntries(FEATURE_NAMES.map(name => [name, Type.Boolean()])),
    servers: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          url: Type.String(),
          reachable: Type.Boolean(),
          ready: Type.Boolean(),
          processes: Type.Optional(Type.Integer()),
          checks: Type.Array(
            Type.Object(
              {
                name: Type.String(),
                ok: Type.Boolean(),
                reason: Type.Optional(Type.String()),
                note: Type.Optional(Type.String({ description: 'The profile of the upstream in use.' })),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
)

export const systemEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/system',
    title: 'Servers, database, upstream and versions',
    result: System,
    async handle({ app, context }) {
      const { version, node, startedAt, database, upstreamUrl, policyRules, audit, features } =
        describeSystem(context)
      const servers = await findServers(app, context)
      return {
        version,
        node,
        started_at: formatTime(startedAt),
        database,
        audit,
        ...Object.fromEntries(features.map(({ name, isOn }) => [name, isOn])),
        ...(upstreamUrl !== undefined && { upstream_url: upstreamUrl }),
        ...(policyRules !== undefined && { policy_rules: policyRules }),
        servers: servers.map(({ name, url, checks, processes }) => ({
          name,
          url,
          reachable: checks !== undefined,
          ready: checks?.every(({ ok }) => ok) ?? false,
          ...(processes !== undefined && { processes }),
          checks: (checks ?? []).map(({ name: check, ok, reason, note }) => ({
            name: check,
            ok,
            ...(reason !== undefined && { reason }),
            ...(note !== undefined && { note }),
          })),
        })),
      }
    },
  }),
  defineEndpoint({
    method: 'GET',
    path: '/log-level',
    title: 'The log level',
    result: Level,
    handle: async ({ context }) => ({ level: context.controls.getLogLevel() }),
  }),
  defineEndpoint({
    method: 'PUT',
    path: '/log-level',
    title: 'Set the log level until the next start',
    description: 'On all instances, within seconds.',
    body: Level,
    result: Level,
    operation: SET_LOG_LEVEL,
    async handle({ admin, context, body: { level } }) {
      await setLogLevel(admin, context, level)
      return { level: context.controls.getLogLevel() }
    },
  }),
]
