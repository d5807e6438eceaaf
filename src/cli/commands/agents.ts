import { HOW } from '../../core/index.ts'
import type { Command } from '../command.ts'
import { performCommand } from '../with-store.ts'

const agentsOff: Command = {
  usage: `
Usage: ${HOW} agents off

Ends the access of every AI assistant within 5 seconds, on all instances, and lets none ask for access until agents on. Apps
keep their access.`,
  async run(_args, io) {
    const { setAgents } = await import('../../auth/index.ts')
    await performCommand(io, 'Cannot switch assistants off', admin => setAgents(admin, 'off'))
    io.stdout.write('Assistants are off: every one loses its access within 5 seconds\n')
    return 0
  },
}

const agentsOn: Command = {
  usage: `
Usage: ${HOW} agents on

Lets AI assistants ask people for access again. Access that ended stays ended.`,
  async run(_args, io) {
    const { setAgents } = await import('../../auth/index.ts')
    await performCommand(io, 'Cannot switch assistants on', admin => setAgents(admin, 'on'))
    io.stdout.write('Assistants are on: they may ask for access again\n')
    return 0
  },
}

export const commands = { 'agents off': agentsOff, 'agents on': agentsOn }
