/**
 * What the launcher starts with another Node: the program. It ends with the launcher, however that ends: a launcher that was
 * killed closes the channel, and sends no signal.
 */
import { runHere } from './run.ts'

process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
// The channel does not keep the program running.
process.channel?.unref()
await runHere()
