// Reports that somebody uses the page: types, presses, scrolls or moves the pointer. At most once in a while, and never for a
// page that only lies open. `report` gets the seconds since the last use, so that the idle time begins then.
const EVENTS = ['keydown', 'pointerdown', 'pointermove', 'wheel', 'touchmove', 'input']

export function reportUse({ getEveryMs, report }) {
  let usedAt = 0
  let reportedAt = Date.now()
  let at = ''

  function send() {
    if (usedAt <= reportedAt || Date.now() - reportedAt < getEveryMs()) return
    reportedAt = Date.now()
    report((reportedAt - usedAt) / 1000)
  }

  function note(event) {
    if (event.type === 'pointermove') {
      // Browsers also send this event when the page moves under a pointer that lies still.
      const place = `${event.screenX} ${event.screenY}`
      const isStill = at === '' || place === at
      at = place
      if (isStill) return
    }
    usedAt = Date.now()
    send()
  }

  for (const type of EVENTS) addEventListener(type, note, { capture: true, passive: true })
  setInterval(send, 1000)
}
