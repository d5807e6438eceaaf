/** What we read of `process`. */
interface Started {
  readonly env: { readonly [name: string]: string | undefined }
  readonly ppid: number
}

/**
 * At SIGTERM, npx ends the shell that it started, and that shell does not pass the signal on: calls `end` when our parent is gone. Only for
 * the command that npx itself runs, because a daemon outlives its parent on purpose.
 */
export function endWithNpx(end: () => void, started: Started = process): void {
  const { npm_command: command, npm_lifecycle_script: script } = started.env
  if (command !== 'exec' || !script?.includes('sallyport')) return
  const parent = started.ppid
  const timer = setInterval(() => {
    if (started.ppid === parent) return
    clearInterval(timer)
    end()
  }, 500)
  timer.unref()
}
