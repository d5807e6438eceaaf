import { Type } from 'typebox'
import { Members } from '../../../endpoint/index.ts'
import { runTransaction } from '../../base/transaction.ts'
import { areAgentsOff, switchAgents } from '../../oauth/grants/agents-switch.ts'
import { type Admin, type AdminFailure, type AdminOperation, recordAction } from '../base/action.ts'
import { defineArea } from '../subject/area.ts'
import type { Subject } from '../subject/subject.ts'

interface Switched {
  readonly agents: 'on' | 'off'
}

const SWITCHES = {
  off: { name: 'agents off', signIn: 'never asks' },
  on: { name: 'agents on', signIn: 'asks' },
} as const satisfies Readonly<Record<Switched['agents'], AdminOperation>>

/** Refuses every agent at once, or lets them ask again (AGENT-8). */
export function setAgents(admin: Admin, agents: Switched['agents']): Promise<Switched | AdminFailure> {
  return runTransaction(admin.store.db, async trx => {
    const before = { agents: (await areAgentsOff(trx)) ? 'off' : 'on' }
    const ended = await switchAgents(trx, agents, admin.clock())
    const after = { agents, ...(ended > 0 && { ended }) }
    const refused = await recordAction(admin, { operation: SWITCHES[agents], before, after }, trx)
    return refused ?? { agents }
  })
}

const AGENTS: Subject<never, string, Switched> = {
  name: 'agents',
  operations: {
    off: {
      signIn: SWITCHES.off.signIn,
      isOnAll: true,
      api: {
        title: 'Refuse every assistant at once',
        description: 'On all instances within 5 seconds. It ends the access of every assistant.',
      },
      page: {
        title: () => 'Switch assistants off?',
        text: 'Every assistant loses its access within seconds, on all servers, and none gets access until you switch them on again. Apps keep theirs.',
        button: 'Switch off',
      },
      command: {
        act: 'switch assistants off',
        done: () => 'Assistants are off: every one loses its access within 5 seconds',
        help: `
Ends the access of every AI assistant within 5 seconds, on all instances, and lets none ask for access until agents on. Apps
keep their access.`,
      },
      perform: admin => setAgents(admin, 'off'),
    },
    on: {
      signIn: SWITCHES.on.signIn,
      isOnAll: true,
      api: { title: 'Let assistants ask for access again' },
      page: {
        title: () => 'Switch assistants on?',
        text: 'Assistants may ask people for access again. Access that ended stays ended.',
        button: 'Switch on',
        isDangerous: false,
      },
      command: {
        act: 'switch assistants on',
        done: () => 'Assistants are on: they may ask for access again',
        help: `
Lets AI assistants ask people for access again. Access that ended stays ended.`,
      },
      perform: admin => setAgents(admin, 'on'),
    },
  },
  toTarget: name => name,
  api: {
    path: '/agents/:name',
    result: Members({ agents: Type.Union([Type.Literal('on'), Type.Literal('off')]) }),
  },
  pages: {
    section: 'system',
    path: '/agents/:name',
    home: '/system',
    show: (_request, { agents }) => `/system?done=agents-${agents}`,
  },
  command: { noun: 'assistants' },
}

export const AGENT_AREA = defineArea(AGENTS)
