import { defineDerived, defineFixed, none } from './setting-row.ts'
import * as types from './setting-types.ts'

export const agentsTable = {
  'agents.enabled': defineDerived({
    name: 'smart.agents.enabled',
    type: types.flag,
    otherwise: '`true` on loopback, otherwise `false`',
    about:
      'Lets AI assistants use the MCP endpoint `<FHIR base URL>/mcp`, each for one person, within a grant of its own ([how](how-to/agents.md)).',
    derive: ({ onLoopback }) => onLoopback,
  }),
  'agents.accessMinutes': defineFixed({
    name: 'smart.agents.access-minutes',
    type: types.wholeNumber(1, 480),
    initial: '15',
    about: 'How long the access of an assistant lasts in all, from the consent, without `offline_access`.',
  }),
  'agents.offlineAccess': defineFixed({
    name: 'smart.agents.offline-access',
    type: types.flag,
    initial: 'false',
    about:
      'Lets assistants ask for `offline_access`, which the person must select: access then lasts like that of an app.',
  }),
  'agents.scopeContexts': defineFixed({
    name: 'smart.agents.scope-contexts',
    type: types.contexts,
    initial: 'patient',
    about:
      'Scope contexts that assistants may use, at most those of `smart.fhir.scope-contexts`. `user` lets an assistant use every record that its person may open, `system` lets a backend service use the MCP endpoint.',
  }),
  'agents.clientHosts': defineDerived({
    name: 'smart.agents.client-hosts',
    type: types.hosts,
    otherwise: 'none; on loopback every host',
    about:
      'Hosts whose client ID metadata documents the auth server accepts: an assistant then needs no registration, because its client id is the https URL of its document.',
    derive: none,
  }),
  'agents.proposalDays': defineFixed({
    name: 'smart.agents.proposal-days',
    type: types.wholeNumber(1, 90),
    initial: '7',
    about: 'How long a person can sign a change that an assistant proposes.',
  }),
  'agents.callsPerMinute': defineFixed({
    name: 'smart.agents.calls-per-minute',
    type: types.wholeNumber(1, 10_000),
    initial: '120',
    about:
      'How many requests an assistant may send in a minute with one grant, to each process of the FHIR server.',
  }),
}
