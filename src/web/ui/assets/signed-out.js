// Tells the other tabs of the browser that its user has signed out (sign-out.js).
new BroadcastChannel('sallyport-sign-out').postMessage('signed out')
